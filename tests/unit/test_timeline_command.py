"""`stalesim timeline` as a user meets it, and event logs of real systems."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis import clients, figures, frames, page, staleness, timelines
from stalesim.simulator import cli, studies
from stalesim.simulator.config.errors import DataError, ScenarioError, StudyError
from stalesim.simulator.scenario.reading import read, read_any
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.scenario.writing import to_yaml
from stalesim.simulator.timeline import check
from stalesim.simulator.timelines.imported import import_log
from stalesim.simulator.timelines.of_run import timeline
from stalesim.simulator.timelines.saved import record
from stalesim.simulator.trace import load, write_manifest
from stalesim.simulator.trace.manifest import read_manifest
from tests.support import SGD, everything, scenario

WORLD = """\
name: world
replicates: 2
clients:
  compute: {law: expon}
  upload: {bandwidth: 100}
  groups:
    slow: {number: 2, compute: {law: expon, scale: 2}}
    fast: {number: 3}
job: {upload_bytes: 10, download_bytes: 20}
protocol: {kind: asynchronous}
stop: {time: 50}
variants:
  async: {}
  sync: {protocol: {kind: synchronous}}
sweep:
  job.upload_bytes: [10, 20]
"""
ENVIRONMENT = {**os.environ, "COLUMNS": "120"}


@pytest.fixture
def world(tmp_path: Path) -> Path:
    path = tmp_path / "world.yaml"
    path.write_text(WORLD, encoding="utf-8")
    return path


def stalesim(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stalesim", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, env=ENVIRONMENT, timeout=300
    )


def test_a_world_is_played_without_jax(world: Path, tmp_path: Path) -> None:
    folder, events = tmp_path / "out", tmp_path / "events.json"
    ordinary = tmp_path / "ordinary.yaml"
    ordinary.write_text(to_yaml(scenario()), encoding="utf-8")
    code = (
        "import sys; from stalesim.simulator import cli\n"
        "for a in (sys.argv[1:-1], ['timeline', sys.argv[-1], '-o', sys.argv[3]+'2']):"
        "\n    cli.app(a, standalone_mode=False)\n"
        "assert 'jax' not in sys.modules and 'equinox' not in sys.modules"
    )
    arguments = ["timeline", world, "-o", folder, "--chrome", events, "--gantt", "5"]
    arguments[1:4] = ["-o", folder, world]
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, [*arguments, ordinary])],
        capture_output=True, text=True, env=ENVIRONMENT, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for word in (
        "commits/s",
        "contributions/s",
        "async, upload_bytes=10",
        "utilisation",
        "closed form",
    ):
        assert word in done.stdout
    study = load(folder)
    assert study.complete
    assert len(study.manifest["runs"]) == 8
    for table in ("rows", "jobs"):
        assert set(study.table(table)["run"]) == set(range(8))
    assert {r["stop"] for r in study.manifest["runs"]} == {"time"}
    for name in ("gantt", "staleness"):
        assert (folder / "figures" / f"{name}.png").stat().st_size > 10_000
    trace = json.loads(events.read_text(encoding="utf-8"))
    assert {event["ph"] for event in trace["traceEvents"]} == {"M", "X", "i"}
    again = load(f"{folder}2").manifest["runs"][0]
    assert again["upload_bytes"] == 17 * 4  # as the algorithm's configuration says


def test_groups_inherit_from_all_clients_in_every_run(world: Path) -> None:
    config = read_any(world)
    assert isinstance(config, WorldScenario)
    for run in expand(config):
        behaviours = run.scenario.clients.behaviours(5)
        assert [b.upload.bandwidth for _, _, b in behaviours] == [100, 100]
        assert [b.compute.scale for _, _, b in behaviours] == [2, 1]
    text = world.with_name("again.yaml")
    text.write_text(to_yaml(config), encoding="utf-8")
    assert read_any(text) == config


def test_an_ordinary_scenario_weighs_the_same_played_alone_or_learned() -> None:
    from stalesim.simulator import simulation

    for changes in ({}, SGD, {"protocol": {"kind": "centralised"}}):
        run = expand(scenario(changes))[0]
        one, other = timeline(run), simulation.prepare(run).timeline
        assert one.workload == other.workload
        assert one.digest == other.digest


def test_mistakes_are_one_line(world: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("client,read_time\n1,2\n", encoding="utf-8")
    for arguments, message in (
        (("run", world), "play its world alone: stalesim timeline"),
        (("timeline", world, "-s", "clients.uplod={}"), "did you mean"),
        (("timeline", world, "-s", "stop={epochs: 3}"), "stop.epochs must not be set"),
        (("timeline", world, "--gantt", "0"), "--gantt must be > 0"),
        (
            ("timeline", world, "--chrome", tmp_path / "no" / "x"),
            "a folder that exists",
        ),
        (("timeline",), "either a scenario, --import LOG or --like LOG"),
        (("timeline", "--import", log), "must have the column arrived_time"),
        (("timeline", tmp_path / "no.yaml"), "there is no such file"),
    ):
        done = stalesim(*arguments)
        assert done.returncode == 2, (arguments, done.stdout, done.stderr)
        assert message in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr


def test_a_mistake_in_a_protocol_is_a_line(world: Path, tmp_path: Path) -> None:
    template = Path(cli.__file__).parent / "templates" / "protocol" / "my_part.py"
    text = template.read_text(encoding="utf-8").replace("(client,)", "(clint,)")
    part = tmp_path / "mistaken.py"
    part.write_text(text, encoding="utf-8")
    (line,) = [n for n, row in enumerate(text.splitlines(), 1) if "clint" in row]
    out = ("-o", tmp_path / "there", "-s", "variants={}", "-s", "protocol.kind=my_part")
    done = stalesim("--import", part, "timeline", world, *out)
    assert done.returncode == 1
    assert done.stderr.startswith("stalesim: world failed: NameError: name 'clint'")
    assert done.stderr.endswith(f" (mistaken.py:{line})\n")
    assert done.stderr.count("\n") == 1, done.stderr
    assert not (tmp_path / "there").exists()


def test_a_world_is_checked_with_its_line(world: Path) -> None:
    with pytest.raises(ScenarioError, match=r"world\.yaml:1: must have a problem"):
        read(world)
    bad = world.with_name("bad.yaml")
    for old, new, message in (
        ("{law: expon}", "{law: expn}", r"bad\.yaml:4: clients\.compute"),
        ("number: 3", "number: 0", r"bad\.yaml:8: clients\.groups\.fast\.number"),
        ("{kind: synchronous}", "{kind: syncronous}", r"bad\.yaml:14: variants\.sync"),
        ("[10, 20]", "[10, -1]", r"bad\.yaml:16: sweep of job\.upload_bytes = -1"),
    ):
        bad.write_text(WORLD.replace(old, new), encoding="utf-8")
        with pytest.raises(ScenarioError, match=message):
            read_any(bad)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_run_leaves_readable_parts(
    number: signal.Signals, world: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    command = [sys.executable, "-m", "stalesim", "timeline", str(world)]
    command += ["-s", "stop.time=1000000", "-o", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    begun = time.monotonic()
    while time.monotonic() - begun < 120:
        if sum(path.stat().st_size for path in folder.glob("journal-*.log")):
            break
        time.sleep(0.05)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    study = load(folder)
    assert not study.complete
    assert len(study.table("rows")) > 0
    assert set(study.table("jobs")["client"]) <= {1, 2, 3, 4, 5}
    if number is signal.SIGTERM:
        assert process.returncode == 130
        assert "marked incomplete" in errors
        assert study.manifest["interrupted"]
    again = record(read_any(world), folder)  # the folder can be used at once
    assert again.complete
    assert again.table("rows")["time"].max() <= 50


def test_a_refused_recording_leaves_nothing(tmp_path: Path) -> None:
    study = scenario(SGD)
    played = record(study, tmp_path / "played")
    replaying = study.replaced(timeline={"replay": str(played.folder)})
    part = next(played.folder.glob("rows/part-*.parquet"))
    whole = part.read_bytes()
    part.write_bytes(whole[:200])
    with pytest.raises(StudyError, match="is damaged"):
        record(replaying, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    (tmp_path / "empty").mkdir()
    with pytest.raises(StudyError, match="is damaged"):
        record(replaying, tmp_path / "empty")
    assert not (tmp_path / "empty").exists()
    part.write_bytes(whole)
    assert record(replaying, tmp_path / "again").complete


def test_a_timeline_replaces_none_but_one_that_was_cut_short(
    world: Path, tmp_path: Path
) -> None:
    config, folder = read_any(world), tmp_path / "out"
    record(config, folder)
    with pytest.raises(StudyError, match="must be a new or empty folder"):
        record(config, folder)
    manifest = folder / "manifest.json"
    write_manifest(folder, read_manifest(folder) | {"status": "incomplete"})
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(StudyError, match="must be a new or empty folder"):
        record(config, folder)
    assert (folder / "mine.txt").read_text() == "mine"
    (folder / "mine.txt").unlink()
    assert record(config, folder).complete
    for text in ('{"kind": "study", "status": "incomplete"}', "{", "[]"):
        manifest.write_text(text)
        with pytest.raises(StudyError, match="must be a new or empty folder"):
            record(config, folder)
        assert manifest.read_text() == text
    manifest.unlink()
    (folder / "manifest.json.partial").write_text("{")
    assert record(config, folder).complete  # killed before the first manifest


def test_a_refused_log_is_no_obstacle_to_the_mended_one(tmp_path: Path) -> None:
    log = written(tmp_path, pd.DataFrame(GOOD | {"read_time": [0, 3.0, 2]}))
    command = [sys.executable, "-m", "stalesim", "timeline", "--import", str(log)]
    options: dict[str, Any] = {
        "cwd": tmp_path, "capture_output": True, "text": True, "timeout": 120,
        "env": {**ENVIRONMENT, "PYTHONPATH": str(Path(__file__).parents[2])},
    }  # fmt: skip
    for out in ([], ["-o", "chosen"]):
        refused = subprocess.run([*command, *out], **options)
        assert refused.returncode == 2
        assert "line 3: must have arrived_time" in refused.stderr
    assert not (tmp_path / "chosen").exists()
    assert list(tmp_path.glob("runs/*")) == []
    written(tmp_path, pd.DataFrame(GOOD))
    for out in ([], ["-o", "chosen"]):
        done = subprocess.run([*command, "--no-plots", *out], **options)
        assert done.returncode == 0, done.stderr
    assert load(tmp_path / "runs" / "log-timeline").complete
    assert load(tmp_path / "chosen").complete


def written(folder: Path, frame: pd.DataFrame, name: str = "log.csv") -> Path:
    path = folder / name
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)
    return path


def random_log(num_clients: int, num_jobs: int, seed: int) -> pd.DataFrame:
    """Returns jobs on a coarse grid of times, so that there are many ties."""
    rng = np.random.default_rng(seed)
    rows = []
    for client in range(1, num_clients + 1):
        now = 7.0
        for _ in range(num_jobs):
            read = now + rng.integers(0, 3)
            now = read + rng.integers(1, 6)
            outcome = rng.choice(["applied", "lost", "rejected"], p=[0.8, 0.1, 0.1])
            rows.append((client, read, now, outcome))
    frame = pd.DataFrame(
        rows, columns=["client", "read_time", "arrived_time", "outcome"]
    )
    return frame.sample(frac=1, random_state=seed)


@pytest.mark.parametrize("seed", range(5))
def test_an_imported_log_is_a_valid_timeline(seed: int, tmp_path: Path) -> None:
    log = random_log(5, 40, seed)
    name = "log.parquet" if seed % 2 else "log.csv"
    study = import_log(written(tmp_path, log, name), tmp_path / "there")
    entry = study.manifest["runs"][0]
    rows, jobs = study.table("rows"), study.table("jobs")
    applied = log.loc[log["outcome"] == "applied"]
    arrivals = np.sort(applied["arrived_time"].to_numpy()) - entry["began"]
    assert np.array_equal(rows["time"], arrivals)
    for job in jobs.itertuples():
        assert job.read_version == (arrivals <= job.read_time).sum()
    assert sorted(jobs["outcome"].str.lower()) == sorted(log["outcome"])
    # The engine itself refuses a register that holds another version than is said.
    run = scenario(
        SGD, {"clients": None, "timeline": {"replay": str(tmp_path / "there")}},
        {"stop": {"commits": 10_000}},
    )  # fmt: skip
    learned = studies.simulate(run, tmp_path / "learned")
    assert len(learned.table("commits")) == len(applied)
    rows, _, _ = everything(timeline(expand(run)[0]), 7)
    check(rows, entry["num_registers"])
    assert entry["num_registers"] <= 6


def test_an_exported_timeline_is_imported_as_it_was(tmp_path: Path) -> None:
    study = record(scenario(SGD), tmp_path / "played")
    jobs = study.table("jobs")
    jobs = jobs.loc[jobs["outcome"] == "APPLIED"].sort_values("commit")
    times = ["read_time", "computed_time", "sent_time", "arrived_time"]
    log = jobs[["client", *times]].assign(client="c" + jobs["client"].astype(str))
    again = import_log(written(tmp_path, log), tmp_path / "there")
    labels = again.table("clients")["client_label"]
    assert labels.tolist() == [f"c{k}" for k in range(1, 6)]
    one, other = study.table("rows"), again.table("rows")
    for column in ("time", "worker", "job", "version", "read_version"):
        np.testing.assert_array_equal(one[column], other[column], column)


def test_a_log_of_rounds_is_of_a_server_that_waits(tmp_path: Path) -> None:
    late = {"kind": "synchronous", "wait_for": 3}
    study = record(scenario(SGD, {"protocol": late}), tmp_path / "played")
    jobs = study.table("jobs").sort_values(["client", "job"])
    ended = jobs["outcome"].isin(["APPLIED", "REJECTED"])
    jobs = jobs.loc[ended].assign(outcome=jobs["outcome"].str.lower())
    assert (jobs["outcome"] == "rejected").any()
    times = ["read_time", "computed_time", "sent_time", "arrived_time"]
    log = jobs[["client", *times, "outcome"]].assign(round=7 + jobs["read_version"])
    again = import_log(written(tmp_path, log), tmp_path / "there")
    one, other = study.table("rows"), again.table("rows")
    for column in ("row", "place", "time", "worker", "job", "version", "read_version"):
        np.testing.assert_array_equal(one[column], other[column], column)
    said = again.table("jobs").sort_values(["client", "job"])
    for column in ("read_version", "commit", "applied_time"):
        np.testing.assert_array_equal(said[column], jobs[column], column)
    changes = {"clients": None, "timeline": {"replay": str(tmp_path / "there")}}
    run = scenario(SGD, changes, {"protocol": {"kind": "synchronous"}})
    rows, _, _ = everything(timeline(expand(run)[0]), 7)
    check(rows, again.manifest["runs"][0]["num_registers"])


def test_a_log_may_say_what_was_read_at_the_instant_of_a_commit(tmp_path: Path) -> None:
    for said in (4, 5):
        log = pd.DataFrame(GOOD | {"read_version": [4, 4, said]})
        found = import_log(written(tmp_path, log), tmp_path / f"{said}").table("jobs")
        assert found["read_version"].tolist() == [0, said - 4, 0]
    both = pd.DataFrame(GOOD | {"read_version": [0, 0, 1], "round": [1, 1, 2]})
    with pytest.raises(DataError, match="got both; remove one"):
        import_log(written(tmp_path, both), tmp_path / "both")


PHONES = pd.DataFrame(
    {
        "client": ["phone-b", "phone-a", "phone-c", "phone-a", "phone-b"],
        "read_time": [0.0, 0.0, 1.0, 3.0, 4.0],
        "computed_time": [1.0, 2.0, 4.0, 4.0, 6.0],
        "arrived_time": [2.0, 3.0, 5.0, 6.0, 8.0],
    }
)


def test_the_labels_of_a_log_are_kept_wherever_its_clients_are_shown(
    tmp_path: Path,
) -> None:
    log, folder = written(tmp_path, PHONES, "fleet.csv"), tmp_path / "fleet"
    events = tmp_path / "events.json"
    done = stalesim("timeline", "--import", log, "-o", folder, "--chrome", events)
    assert "Server: taken to be asynchronous" in done.stdout
    assert done.returncode == 0, done.stderr
    for label in ("phone-a", "phone-b", "phone-c", "fleet: clients"):
        assert label in done.stdout
    assert "fleet: 5 commits, 5 contributions in 8 virtual s" in done.stdout
    assert "the recording has ended" in done.stdout
    study = load(folder)
    entry = study.manifest["runs"][0]
    assert (study.manifest["name"], entry["label"]) == ("fleet", "fleet")
    known = study.table("clients").set_index("client")
    assert known["client_label"].to_dict() == {
        1: "phone-a", 2: "phone-b", 3: "phone-c"
    }  # fmt: skip
    assert known["num_applied"].tolist() == [2, 2, 1]
    # By hand: versions are made at 2, 3, 5, 6 and 8 s; phone-b read version 2 at 4 s.
    assert known["staleness_mean"].tolist() == [1.0, 1.0, 2.0]
    trace = json.loads(events.read_text(encoding="utf-8"))["traceEvents"]
    threads = [e["args"]["name"] for e in trace if e["name"] == "thread_name"]
    assert threads == ["server", "phone-a", "phone-b", "phone-c"]
    drawn = dict(timelines.standard(study))["gantt"].axes[0]
    ticks = [tick.get_text() for tick in drawn.get_yticklabels()]
    assert ticks == ["phone-a", "phone-b", "phone-c"]
    run = scenario(
        SGD,
        {"problem": {"partition": {"clients": 3}}, "clients": None},
        {"timeline": {"replay": str(folder)}, "stop": {"commits": None, "time": 200}},
        {"evaluate": {"every": {"commits": None, "time": 1}}},
    )
    learned = studies.simulate(run, tmp_path / "learned")
    labels = learned.table("clients")["client_label"]
    assert labels.tolist() == ["phone-a", "phone-b", "phone-c"]
    (end,) = learned.manifest["runs"]
    assert (end["stop"], end["virtual_s"]) == ("recording", 8.0)
    figure = figures.staleness_histogram(learned, "base")
    titles = [axes.get_title(loc="left").split("\n")[0] for axes in figure.axes]
    assert titles == ["phone-a", "phone-b", "phone-c"]


def test_numbers_in_order_are_no_labels(tmp_path: Path) -> None:
    log = written(tmp_path, pd.DataFrame(GOOD))
    assert "client_label" not in import_log(log, tmp_path / "there").table("clients")
    other = pd.DataFrame({**GOOD, "client": [7, 12_345_678_901, 7]})
    for name, log in (("whole", other), ("floats", other.astype({"client": float}))):
        study = import_log(written(tmp_path, log, f"{name}.csv"), tmp_path / name)
        labels = study.table("clients")["client_label"]
        assert labels.tolist() == ["7", "12345678901"]
    who = clients.of_run(study, 0)
    assert clients.names(who, [1, 2]) == ["1 (log: 7)", "2 (log: 12345678901)"]
    assert clients.titles(who, [2]) == ["client 2 (log: 12345678901)"]


def test_the_groups_of_a_scenario_are_kept_wherever_its_clients_are_shown(
    world: Path, tmp_path: Path
) -> None:
    study = record(read_any(world), tmp_path / "played")
    known = study.table("clients")
    expected = ["slow", "slow", "fast", "fast", "fast"]
    for run in range(8):
        mine = known.loc[known["run"] == run]
        assert mine["client_group"].tolist() == expected
    tables = dict(timelines.tables(study))
    names = ["1 (slow)", "2 (slow)", "3 (fast)", "4 (fast)", "5 (fast)"]
    assert tables["async, upload_bytes=10: clients"]["client"].tolist() == names
    events = tmp_path / "events.json"
    timelines.export(study, events)
    trace = json.loads(events.read_text(encoding="utf-8"))["traceEvents"]
    threads = [e["args"]["name"] for e in trace if e["name"] == "thread_name"]
    assert threads[:6] == ["server", *(f"client {name}" for name in names)]
    drawn = dict(timelines.standard(study))["gantt"].axes[0]
    assert [tick.get_text() for tick in drawn.get_yticklabels()] == names
    grouped = read_any(world).model_dump(mode="json")["clients"]
    learned = studies.simulate(scenario(SGD, {"clients": grouped}), tmp_path / "s")
    assert learned.table("clients")["client_group"].tolist() == expected
    figure = figures.staleness_histogram(learned, "base")
    titles = [axes.get_title(loc="left").split("\n")[0] for axes in figure.axes]
    assert titles == [f"client {name}" for name in names]
    divided = staleness.by_client_group(learned).set_index("clients")
    assert divided.index.tolist() == ["all", "slow (2)", "fast (3)"]
    jobs = frames.jobs(learned).dropna(subset="staleness")
    of_group = jobs["client"].map(dict(enumerate(expected, start=1)))
    for name, ages in (
        ("all", jobs["staleness"]),
        ("slow (2)", jobs.loc[of_group == "slow", "staleness"]),
        ("fast (3)", jobs.loc[of_group == "fast", "staleness"]),
    ):
        row = divided.loc[name]
        assert row["count"] == len(ages)
        assert row["mean"] == pytest.approx(ages.mean())
        assert row["max"] == ages.max()
        assert row["95 %"] == np.quantile(ages, 0.95, method="inverted_cdf")
    assert "by groups of clients" in page.html(learned)
    assert staleness.by_client_group(
        studies.simulate(scenario(SGD), tmp_path / "plain")
    ).empty


GOOD: dict[str, list[Any]] = {
    "client": [1, 2, 1],
    "read_time": [0.0, 0.0, 2.0],
    "computed_time": [1.0, 1.0, 3.0],
    "arrived_time": [2.0, 3.0, 4.0],
}


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("arrived_time", None, r"log\.csv: must have the column arrived_time"),
        ("arival_time", [1, 2, 3], r"'arival_time' must be renamed .* did you mean"),
        ("client", [1, None, 1], r"line 3: must name a client"),
        ("read_time", [0, "soon", 2], r"line 3: .* as read_time, got 'soon'; correct"),
        ("read_time", [0, None, 2], r"line 3: must have a finite number"),
        ("read_time", [0, 3.0, 2], r"line 3: must have arrived_time after read_time"),
        ("read_time", [0, 0, 1.5], r"line 4: .* job of row 2 arrived at 2 .* at 1.5"),
        ("computed_time", [1, -1, 3], r"line 3: must have computed_time at or after"),
        ("computed_time", [1, 1, 9], r"line 4: must have arrived_time at or after"),
        ("outcome", ["applied", "gone", "lost"], r"line 3: .* got 'gone'; correct it"),
        ("round", [1, 1, 2], r"line 4: must read after the last applied arrival of"),
        ("round", [1, 1, 1], r"line 2: must be its client's only applied job of"),
        ("round", [1, 1.5, 2], r"line 3: must have a whole number as round"),
        (
            "read_version",
            [0, 0, 2],
            r"line 4: must have as read_version .* column round",
        ),
    ],
)
def test_bad_logs_are_refused_in_one_line(
    column: str, values: list[Any] | None, message: str, tmp_path: Path
) -> None:
    entries = {k: v for k, v in GOOD.items() if k != column}
    log = pd.DataFrame(entries | ({column: values} if values else {}))
    with pytest.raises(DataError, match=message) as caught:
        import_log(written(tmp_path, log), tmp_path / "there")
    assert "\n" not in str(caught.value)
    import_log(written(tmp_path, pd.DataFrame(GOOD)), tmp_path / "there")


LONG = "9" * 400


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", "[" * 100_000, "line 1 is not JSON .nested too deep"),
        (
            "a.jsonl",
            '{"client": ' + "[" * 100_000,
            "line 1 is not JSON .nested too deep",
        ),
        (
            "a.jsonl",
            f'{{"client": 1, "read_time": 0, "arrived_time": {LONG}}}',
            "column arrived_time must have numbers of at most 64 bits",
        ),
        *(
            (
                "a.jsonl",
                f'{{"client": 1, {times}}}\n{{"client": {name}, {times}}}',
                "line 2: must have a number or a name as client, got",
            )
            for name in ("[1]", '{"a": 1}', "[]")
            for times in ('"read_time": 0, "arrived_time": 1', '"seconds": 1')
        ),
        (
            "a.csv",
            "client,read_time,arrived_time\n1,1700000000.0,1700000000001",
            "line 2: must have arrived_time in seconds, at most 1e.11, got 17000000000",
        ),
    ],
)
def test_logs_beyond_all_bounds(
    name: str, text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(f"{text}\n", encoding="utf-8")
    with pytest.raises(DataError, match=message) as caught:
        import_log(tmp_path / name, tmp_path / "there")
    assert "\n" not in str(caught.value)


def test_files_that_are_no_logs(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"no")
    (tmp_path / "empty.csv").write_text("", encoding="utf-8")
    for name, message in (
        ("no.csv", "there is no such file"),
        ("log.txt", "must end in"),
        ("bad.parquet", "must be a readable table"),
        ("empty.csv", "must be a readable table"),
    ):
        with pytest.raises(DataError, match=message):
            import_log(tmp_path / name, tmp_path / "there")


def test_a_summary_has_tables_and_no_gantt_picture(world: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    whole = stalesim("timeline", world, "--out", tmp_path / "whole", "--no-plots")
    summed = stalesim("timeline", world, "--out", folder, "--summary")
    # The same tables are printed; what follows are names of files.
    cut = summed.stdout.index("Figure")
    assert summed.stdout[:cut] in whole.stdout
    drawn = sorted(path.name for path in (folder / "figures").glob("*.png"))
    assert drawn == ["comparison.png", "staleness.png"]
    assert not {"rows", "jobs", "incidents"} & {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--summary", "--gantt", 5), "--gantt and --chrome need every job"),
        (("--set", "variants.sync.record=summary"), "the same for all runs of a study"),
    ],
)
def test_what_needs_the_record_refuses_a_summary(
    world: Path, tmp_path: Path, arguments: tuple[object, ...], says: str
) -> None:
    result = stalesim("timeline", world, "--out", tmp_path / "out", *arguments)
    assert result.returncode != 0
    assert says in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_summary_is_neither_of_a_log_nor_replayed(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("client,read_time,arrived_time\n1,0,1\n")
    result = stalesim("timeline", "--import", log, "--summary")
    assert "--summary must come with a scenario" in result.stderr
    folder = tmp_path / "summary"
    record(scenario(SGD, {"record": "summary"}), folder)
    again = scenario(SGD, {"timeline": {"replay": str(folder)}})
    with pytest.raises(StudyError, match="no table jobs, since the scenario says"):
        studies.simulate(again, tmp_path / "again")


def test_a_run_without_its_record_has_the_same_results(tmp_path: Path) -> None:
    whole = studies.simulate(scenario(SGD), tmp_path / "whole")
    summed = studies.simulate(scenario(SGD, {"record": "summary"}), tmp_path / "sum")
    assert {*whole.files} - {*summed.files} == {"commits", "jobs"}
    for table in ("evaluations", "clients", "staleness"):
        pd.testing.assert_frame_equal(whole.table(table), summed.table(table))
