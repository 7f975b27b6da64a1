/* The playground's page: sliders, a Gantt picture, a histogram; its address carries the scenario. */
"use strict";

(() => {
  const form = document.getElementById("pg-form");
  if (!form) return;
  const SVG = "http://www.w3.org/2000/svg";
  const SHOWN = 60; // contributions in the Gantt picture, at most
  const BARS = 40; // bars of the histogram, at most
  const NUMBERS = ["clients", "slowest", "shape", "size", "seed", "commits"];
  const WIDEST = 610; // pixels of a picture
  const at = (id) => document.getElementById(id);
  const room = () => Math.min(WIDEST, form.clientWidth);

  function options() {
    const found = Object.fromEntries(new FormData(form));
    for (const name of NUMBERS) found[name] = Number(form.elements[name].value);
    return found;
  }

  function element(name, attributes, parent, text) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  function empty(id, width, height, title) {
    const svg = at(id);
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("aria-label", title);
    return svg;
  }

  /* Round numbers that divide 0 to `most`. */
  function ticks(most) {
    const rough = most / 5, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((x) => x * power).find((x) => x >= rough);
    return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, i) => Number((i * step).toPrecision(6)));
  }

  function axis(svg, of, { left, bottom, width, label }) {
    for (const tick of ticks(of)) {
      const x = left + (width * tick) / of;
      element("line", { x1: x, x2: x, y1: bottom, y2: bottom + 4, class: "pg-axis" }, svg);
      element("text", { x, y: bottom + 16, "text-anchor": "middle" }, svg, tick);
    }
    element("line", { x1: left, x2: left + width, y1: bottom, y2: bottom, class: "pg-axis" }, svg);
    element("text", { x: left + width / 2, y: bottom + 32, "text-anchor": "middle" }, svg, label);
  }

  function gantt({ rows, underWay }, { clients }) {
    const first = rows.slice(0, Math.max(SHOWN, clients));
    const end = Math.max(...first.map((row) => row.end));
    const lane = Math.max(8, Math.min(22, 260 / clients)), left = 34, width = room() - 50;
    const bottom = 8 + lane * clients;
    const svg = empty("pg-gantt", room(), bottom + 40, `Jobs of ${clients} clients in the first ${end.toPrecision(3)} seconds`);
    const most = Math.max(1, ...first.map(World.staleness));
    for (const row of rows.filter((row) => row.begin < end)) {
      const x = left + (width * row.begin) / end;
      const right = left + (width * Math.min(row.end, end)) / end;
      const bar = element("rect", {
        x, y: 8 + lane * row.client + 1, height: lane - 2, width: Math.max(right - x - 1, 0.5),
        class: "pg-bar", "fill-opacity": 0.25 + 0.75 * Math.min(1, World.staleness(row) / most),
      }, svg);
      element("title", {}, bar, `client ${row.client + 1}: read version ${row.read} at ${row.begin.toFixed(3)} s, arrived at ${row.end.toFixed(3)} s, staleness ${World.staleness(row)}`);
    }
    for (const { client, begin, read } of underWay.filter((job) => job.begin < end)) {
      const x = left + (width * begin) / end;
      const bar = element("rect", {
        x, y: 8 + lane * client + 1.5, height: lane - 3, width: Math.max(left + width - x - 1, 0.5), class: "pg-open",
      }, svg);
      element("title", {}, bar, `client ${client + 1}: read version ${read} at ${begin.toFixed(3)} s, under way at the end`);
    }
    const every = Math.ceil(clients / 12);
    for (let client = 0; client < clients; client += every)
      element("text", { x: left - 6, y: 8 + lane * (client + 0.5) + 4, "text-anchor": "end" }, svg, client + 1);
    axis(svg, end, { left, bottom, width, label: "virtual seconds; the stronger, the staler" });
  }

  /* Bars are of one staleness each, or of several where there are many. */
  function histogram(rows, chosen) {
    const ages = rows.map(World.staleness);
    const sorted = [...ages].sort((a, b) => a - b);
    const last = Math.max(3, sorted[Math.floor(0.995 * (sorted.length - 1))]);
    const wide = Math.ceil((last + 1) / BARS), bars = Math.ceil((last + 1) / wide);
    const share = new Float64Array(bars);
    for (const age of ages) if (age < wide * bars) share[Math.floor(age / wide)] += 1 / ages.length;
    const law = World.closedForm(chosen, wide * bars - 1);
    const dots = law && Array.from(share, (_, i) => law.slice(wide * i, wide * (i + 1)).reduce((a, b) => a + b, 0));
    const high = 1.08 * Math.max(...share, ...(dots || [0]));
    const left = 40, width = room() - 60, bottom = 210, each = width / bars;
    const svg = empty("pg-histogram", room(), bottom + 40, `Histogram of staleness, mean ${mean(ages).toFixed(2)} commits`);
    const y = (value) => bottom - (200 * value) / high;
    const named = (i) => (wide > 1 ? `${wide * i} to ${wide * (i + 1) - 1}` : `${i}`);
    share.forEach((value, i) => {
      const bar = element("rect", {
        x: left + each * i + 1, y: y(value), width: Math.max(each - 2, 1), height: bottom - y(value), class: "pg-bar",
      }, svg);
      element("title", {}, bar, `staleness ${named(i)}: ${(100 * value).toFixed(1)} %`);
    });
    (dots || []).forEach((value, i) =>
      element("circle", { cx: left + each * (i + 0.5), cy: y(value), r: 3.5, class: "pg-law" }, svg));
    for (const tick of ticks(high))
      element("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, svg, tick);
    const every = Math.ceil((34 * bars) / width);
    for (let i = 0; i < bars; i += every)
      element("text", { x: left + each * (i + 0.5), y: bottom + 16, "text-anchor": "middle" }, svg, wide * i);
    element("line", { x1: left, x2: left + width, y1: bottom, y2: bottom, class: "pg-axis" }, svg);
    const beyond = 100 * (1 - share.reduce((a, b) => a + b, 0));
    const words = ["staleness (commits)", law && "dots: closed form", beyond > 0.05 && `${beyond.toFixed(1)} % beyond`];
    element("text", { x: left + width / 2, y: bottom + 32, "text-anchor": "middle" }, svg, words.filter(Boolean).join("; "));
  }

  const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

  let drawn = 0; // width of the pictures

  function show() {
    drawn = room();
    const chosen = options();
    for (const name of NUMBERS) if (at(`pg-${name}`)) at(`pg-${name}`).textContent = chosen[name];
    form.elements.shape.disabled = !World.LAWS[chosen.law].shape;
    form.elements.size.disabled = chosen.protocol !== "buffered";
    const played = World.play(chosen), { rows } = played;
    gantt(played, chosen);
    histogram(rows, chosen);
    const seconds = Math.max(...rows.slice(-chosen.clients).map((row) => row.end));
    at("pg-told").textContent =
      `Mean staleness ${mean(rows.map(World.staleness)).toFixed(3)} commits; in the steady state ` +
      `${World.meanStaleness(chosen).toFixed(3)}. ${chosen.commits} commits of ${rows.length} contributions in ` +
      `${seconds.toPrecision(4)} virtual seconds.`;
    at("pg-checksum").textContent = World.checksum(rows);
    at("pg-scenario").textContent = World.scenario(chosen);
  }

  function remember() {
    history.replaceState(null, "", `#${new URLSearchParams(options())}`);
  }

  /* Takes what the address says, as far as the form has such values. */
  function recall() {
    for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
      const field = form.elements[name];
      if (!field || (NUMBERS.includes(name) && !(value && isFinite(value)))) continue;
      const before = field.value;
      field.value = value;
      if (field.value === "") field.value = before; // no such choice
    }
  }

  form.addEventListener("input", () => { show(); remember(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("resize", () => { if (room() !== drawn) show(); });
  window.addEventListener("hashchange", () => { recall(); show(); });
  recall();
  show();
})();
