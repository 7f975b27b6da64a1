/* The world of a scenario, in the browser: the same draws, the same order, the same versions.

A twin of simulator/world/streams.py (Philox, keyed by seed, client and position), of the laws that need no
more than logarithms and powers, and of three protocols. tests/unit/docs/test_playground.py compares it
with the program. Durations may differ in the last digit, by the logarithm and the power of the browser.
*/
"use strict";

const World = (() => {
  const MASK = (1n << 64n) - 1n;
  const COMPUTE = 1n; // Purpose.COMPUTE

  /* numpy.random.SeedSequence: a pool of four words, mixed from seed and spawn key. */
  function pool(seed, spawn) {
    const entropy = [];
    for (let left = BigInt(seed); left > 0n || !entropy.length; left >>= 32n)
      entropy.push(Number(left & 0xffffffffn));
    if (spawn.length) while (entropy.length < 4) entropy.push(0);
    entropy.push(...spawn);
    let constant = 0x43b0d7e5;
    const hashed = (word) => {
      word = (word ^ constant) >>> 0;
      constant = Math.imul(constant, 0x931e8875) >>> 0;
      word = Math.imul(word, constant) >>> 0;
      return (word ^ (word >>> 16)) >>> 0;
    };
    const mixed = (one, other) => {
      const word = (Math.imul(0xca01f9dd, one) - Math.imul(0x4973f715, other)) >>> 0;
      return (word ^ (word >>> 16)) >>> 0;
    };
    const words = [0, 1, 2, 3].map((i) => hashed(i < entropy.length ? entropy[i] : 0));
    for (let from = 0; from < 4; from++)
      for (let to = 0; to < 4; to++) if (from !== to) words[to] = mixed(words[to], hashed(words[from]));
    for (const more of entropy.slice(4))
      for (let to = 0; to < 4; to++) words[to] = mixed(words[to], hashed(more));
    return words;
  }

  function state(words, number) {
    let constant = 0x8b51f9dd;
    return Array.from({ length: number }, (_, i) => {
      let word = (words[i % 4] ^ constant) >>> 0;
      constant = Math.imul(constant, 0x58f38ded) >>> 0;
      word = Math.imul(word, constant) >>> 0;
      return (word ^ (word >>> 16)) >>> 0;
    });
  }

  /* Seed of the first replicate of a study, and the key of its streams. */
  function key(seed) {
    const [run] = state(pool(seed, [0]), 1);
    const [a, b, c, d] = state(pool(run, []), 4).map(BigInt);
    return [a | (b << 32n), c | (d << 32n)];
  }

  /* Philox 4x64 with ten rounds: Salmon et al. (2011). */
  function philox(counter, keys) {
    let [first, second, third, fourth] = counter;
    let [one, two] = keys;
    for (let round = 0; round < 10; round++) {
      const left = first * 0xd2e7470ee14c6c93n, right = third * 0xca5a826395121157n;
      [first, second, third, fourth] = [
        (right >> 64n) ^ second ^ one, right & MASK, (left >> 64n) ^ fourth ^ two, left & MASK,
      ];
      one = (one + 0x9e3779b97f4a7c15n) & MASK;
      two = (two + 0xbb67ae8584caa73bn) & MASK;
    }
    return [first, second, third, fourth];
  }

  /* Numbers in (0, 1) of a client, one after the other. */
  function* uniforms(keys, client) {
    for (let block = 1n; ; block++)
      for (const word of philox([block, 0n, BigInt(client), COMPUTE], keys))
        yield (Number(word >> 12n) + 0.5) * 2 ** -52;
  }

  /* Laws of mean 1, by inversion: options for the scenario, and the quantile at scale 1. */
  const LAWS = {
    expon: { quantile: (u) => -Math.log1p(-u), mean: () => 1 },
    weibull_min: { shape: "c", quantile: (u, c) => (-Math.log1p(-u)) ** (1 / c), mean: (c) => gamma(1 + 1 / c) },
    pareto: { shape: "b", quantile: (u, b) => (1 - u) ** (-1 / b), mean: (b) => b / (b - 1) },
    uniform: { quantile: (u) => u, mean: () => 0.5 },
  };

  /* Lanczos' approximation of the gamma function, for arguments of at least 1. */
  function gamma(x) {
    const terms = [
      676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
      12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
    ];
    const t = x + 6.5;
    const sum = terms.reduce((all, term, i) => all + term / (x + i), 0.99999999999980993);
    return Math.sqrt(2 * Math.PI) * t ** (x - 0.5) * Math.exp(-t) * sum;
  }

  const digits = (x) => Number(x.toPrecision(6)); // what the scenario says is what is played

  /* Mean durations of the clients, at equal ratios from 1 to `slowest` seconds. */
  function scales({ clients, slowest, law, shape }) {
    const unit = LAWS[law].mean(shape);
    return Array.from({ length: clients }, (_, m) =>
      digits((clients > 1 ? slowest ** (m / (clients - 1)) : 1) / unit));
  }

  /* Plays a world: contributions in the order of their arrival, and jobs that outlast it. */
  function play(options) {
    const { clients, law, shape, protocol, size, seed, commits } = options;
    const keys = key(seed), scale = scales(options), { quantile } = LAWS[law];
    const draws = scale.map((_, client) => uniforms(keys, client));
    const duration = (client) => scale[client] * quantile(draws[client].next().value, shape);
    const read = new Float64Array(clients), known = new Int32Array(clients);
    const arrives = scale.map((_, client) => duration(client));
    const rows = [];
    let version = 0, waiting = 0;
    while (version < commits) {
      if (protocol === "synchronous") {
        const begin = read[0], end = Math.max(...arrives);
        const order = arrives.map((_, client) => client).sort((a, b) => arrives[a] - arrives[b]);
        for (const client of order)
          rows.push({ client, begin, end: arrives[client], read: version, commit: version + 1 });
        version += 1;
        read.fill(end);
        for (let client = 0; client < clients; client++) arrives[client] = end + duration(client);
        continue;
      }
      let client = 0;
      for (let other = 1; other < clients; other++) if (arrives[other] < arrives[client]) client = other;
      const now = arrives[client];
      rows.push({ client, begin: read[client], end: now, read: known[client], commit: version + 1 });
      waiting += 1;
      if (waiting === (protocol === "buffered" ? size : 1)) {
        version += 1;
        waiting = 0;
      }
      read[client] = now;
      known[client] = version;
      arrives[client] = now + duration(client);
    }
    const underWay = scale.map((_, client) => ({ client, begin: read[client], read: known[client] }));
    return { rows, underWay: protocol === "synchronous" ? [] : underWay };
  }

  const staleness = (row) => row.commit - 1 - row.read;

  /* Probability of each staleness, where there is a closed form: clients with exponential durations,
  each contribution a commit. Between its read and its arrival a client of rate r sees a geometric
  number of others' commits, with the chance r / R that the next one is its own; of all
  contributions r / R are its own. */
  function closedForm(options, most) {
    if (options.protocol === "synchronous") return Array.from({ length: most + 1 }, (_, s) => (s ? 0 : 1));
    if (options.protocol !== "asynchronous" || options.law !== "expon") return null;
    const rates = scales(options).map((scale) => 1 / scale);
    const all = rates.reduce((a, b) => a + b, 0);
    return Array.from({ length: most + 1 }, (_, s) =>
      rates.reduce((sum, rate) => sum + (rate / all) ** 2 * (1 - rate / all) ** s, 0));
  }

  /* Mean staleness in the steady state, whatever the laws: K - 1 contributions come in between. */
  function meanStaleness({ clients, protocol, size }) {
    if (protocol === "synchronous") return 0;
    return (clients - 1) / (protocol === "buffered" ? size : 1);
  }

  /* CRC-32 of client (from 1) and version that was read, of each contribution, as int32. */
  function checksum(rows) {
    const bytes = new Uint8Array(new Int32Array(rows.flatMap((row) => [row.client + 1, row.read])).buffer);
    let crc = 0xffffffff;
    for (const byte of bytes) {
      crc ^= byte;
      for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ((crc ^ 0xffffffff) >>> 0).toString(16).padStart(8, "0");
  }

  /* The scenario, for `stalesim timeline`. */
  function scenario(options) {
    const { law, shape, protocol, size, seed, commits, clients } = options;
    const shaped = LAWS[law].shape ? `, ${LAWS[law].shape}: ${shape}` : "";
    const kind = protocol === "buffered" ? `{kind: buffered, size: ${size}}` : `{kind: ${protocol}}`;
    return [
      "name: playground", `seed: ${seed}`, "clients:", `  number: ${clients}`,
      `  compute: {law: ${law}${shaped}, scale: [${scales(options).join(", ")}]}`,
      `protocol: ${kind}`, `stop: {commits: ${commits}}`, "",
    ].join("\n");
  }

  return { LAWS, play, staleness, closedForm, meanStaleness, checksum, scenario, key };
})();
if (typeof module !== "undefined") module.exports = World;
