"""`stalesim log import`: logs of real systems become timelines, or are refused."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis import clients, figures, timelines
from stalesim.simulator import studies
from stalesim.simulator.engine.of_run import timeline
from stalesim.simulator.extras.logs.timelines import import_log
from stalesim.simulator.files.study import load
from stalesim.simulator.files.timeline import check
from stalesim.simulator.parts.errors import DataError
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.studies.saved import record
from tests.commands import ENVIRONMENT, stalesim
from tests.support import SGD, everything, scenario

GOOD: dict[str, list[Any]] = {
    "client": [1, 2, 1],
    "read_time": [0.0, 0.0, 2.0],
    "computed_time": [1.0, 1.0, 3.0],
    "arrived_time": [2.0, 3.0, 4.0],
}


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


def test_a_refused_log_is_no_obstacle_to_the_mended_one(tmp_path: Path) -> None:
    log = written(tmp_path, pd.DataFrame(GOOD | {"read_time": [0, 3.0, 2]}))
    command = [sys.executable, "-m", "stalesim", "log", "import", str(log)]
    options: dict[str, Any] = {
        "cwd": tmp_path, "capture_output": True, "text": True, "timeout": 120,
        "env": {**ENVIRONMENT, "PYTHONPATH": str(Path(__file__).parents[3])},
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
    done = stalesim("log", "import", log, "-o", folder)
    assert "Server: taken to be asynchronous" in done.stdout
    assert done.returncode == 0, done.stderr
    for label in ("phone-a", "phone-b", "phone-c", "fleet: clients"):
        assert label in done.stdout
    assert "fleet: 5 server updates, 5 client updates in 8 virtual s" in done.stdout
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
