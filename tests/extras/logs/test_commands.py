"""`stalesim log fit` and `play`: a log becomes a world, played as it was."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from stalesim.analysis import timelines
from stalesim.simulator.cli import commands
from stalesim.simulator.extras.logs import page
from stalesim.simulator.extras.logs.reading import columns_of, read_log
from stalesim.simulator.extras.logs.timelines import import_log
from stalesim.simulator.extras.logs.worlds import play_like, world_of
from stalesim.simulator.files.study import StudyWarning
from stalesim.simulator.parts.errors import DataError, UserError
from stalesim.simulator.scenario.reading import loads_any, read_any
from stalesim.simulator.studies.saved import record

WORLD = """\
name: phones
clients:
  compute: {law: autoregressive, of: {law: lognorm, s: 0.4, scale: 2}, correlation: 0.8}
  upload: {latency: {law: gamma, a: 4, scale: 0.1}}
  number: 4
protocol: {kind: PROTOCOL}
stop: {time: TIME}
"""
COLUMNS = ["client", "read_time", "computed_time", "sent_time", "arrived_time"]


def log_of(folder: Path, protocol: str = "asynchronous", time: int = 600) -> Path:
    """Returns the log of a world that our own simulator plays."""
    text = WORLD.replace("PROTOCOL", protocol).replace("TIME", str(time))
    study = record(loads_any(text, "phones"), folder / "played")
    jobs = study.table("jobs")
    jobs = jobs[jobs["outcome"] == "APPLIED"]
    log = jobs[COLUMNS]
    if protocol == "asynchronous":
        log = log.assign(read_version=jobs["read_version"])
    else:
        log = log.assign(round=jobs["read_version"])
    log.to_csv(folder / "log.csv", index=False)
    return folder / "log.csv"


def stalesim(*arguments: object) -> str:
    result = CliRunner().invoke(commands.app, [*map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_a_log_becomes_a_world_with_its_memory(tmp_path: Path) -> None:
    log, path = log_of(tmp_path), tmp_path / "world.yaml"
    said = stalesim("log", "fit", log, "-o", path)
    assert "compute: 4 clients: 4 autoregressive" in said
    assert "upload: 4 clients: 4 independent" in said
    assert "Note" not in said
    world = read_any(path)
    for group in world.clients.groups.values():
        # 250 jobs: an error of sqrt((1 - r^2) / n) = 0.04, by four.
        assert abs(group.compute.correlation - 0.8) < 0.16
        assert group.upload.latency is not None
        assert group.idle is None
    assert "client-1" in path.with_suffix(".md").read_text()
    assert (tmp_path / "figures" / "world-fit-compute.png").exists()


def test_the_page_says_what_clients_share(tmp_path: Path) -> None:
    world = world_of(read_log(log_of(tmp_path, time=60)), tmp_path / "world")
    law = {"law": "autoregressive", "of": {"law": "lognorm", "s": 0.1, "scale": 1.0}}
    law |= {"correlation": 0.9}
    slowdown = {"kind": "shared", "factor": law, "every": 4.0, "stages": ["compute"]}
    slowed = {"law": "lognorm", "s": 0.1, "scale": 2.0}
    regimes = {"law": "markov", "of": [law["of"], slowed]}
    room = slowdown | {"clients": [1, 2], "factor": regimes}
    clients = world.tree["clients"] | {"slowdowns": [slowdown, room]}
    tree = world.tree | {"clients": clients}
    file, *_ = page.save(world._replace(tree=tree), tmp_path / "world.yaml", ())
    assert (
        "All clients share a factor of compute, a new one every 4 s: autoregressive "
        "(correlation 0.9) of lognorm (s 0.1, scale 1.0).\n"
    ) in file.read_text()
    assert (
        "Clients of a room share a factor of compute, a new one every 4 s: markov of "
        "lognorm (s 0.1, scale 1.0) and lognorm (s 0.1, scale 2.0).\n"
    ) in file.read_text()


def test_a_what_if_has_replicates(tmp_path: Path) -> None:
    log = log_of(tmp_path, time=50)
    study, _ = play_like(
        log, tmp_path / "like", "synchronous", changes=("replicates=2",)
    )
    played = [(run["label"], run["replicate"]) for run in study.manifest["runs"]]
    both = [(name, n) for name in ("fitted", "synchronous") for n in (0, 1)]
    assert played == [("log", 0), *both]


@pytest.mark.parametrize("protocol", ["asynchronous", "synchronous", "buffered"])
def test_a_log_is_compared_until_its_first_client_leaves(
    tmp_path: Path, protocol: str
) -> None:
    text = WORLD.replace("PROTOCOL", protocol).replace("TIME", "400")
    text = text.replace("buffered", "buffered, size: 3")
    text = text.replace("correlation: 0.8", "correlation: 0")
    jobs = record(loads_any(text, "phones"), tmp_path / "played").table("jobs")
    jobs = jobs[jobs["outcome"] == "APPLIED"]
    left = jobs[(jobs["client"] < 3) | (jobs["arrived_time"] < 200)]
    frame = left[COLUMNS]
    if protocol == "synchronous":
        frame = frame.assign(round=left["read_version"])
    if protocol == "buffered":
        frame = left[[*COLUMNS, "commit", "applied_time"]]
    frame.to_csv(tmp_path / "log.csv", index=False)
    study, world = play_like(tmp_path / "log.csv", tmp_path / "like", "synchronous")
    (remark,) = world.remarks
    first = re.match(
        r"compared are the first ([\d.]+) of .* s .* client [34] leaves;", remark
    )
    assert first
    assert 180 < float(first[1]) < 210
    own, fitted, _ = timelines.View(study).by_run.to_dict("records")
    # As without leaving, where a rate over all 400 s would have an error of 25 %.
    assert abs(np.log(fitted["commits_per_s"] / own["commits_per_s"])) < 0.12


@pytest.mark.parametrize("form", ["times", "rounds", "durations"])
def test_clients_leave_a_fitted_world_as_they_leave_its_log(
    tmp_path: Path, form: str
) -> None:
    log, path = tmp_path / "log.csv", tmp_path / "world.yaml"
    rows = [("w1", each, each, each + 1) for each in range(60)]
    rows += [("w2", each, each, each + 1) for each in range(30)]
    names = ["client", "round", "read_time", "arrived_time"]
    frame = pd.DataFrame(rows, columns=names)
    if form != "rounds":
        frame = frame.drop(columns="round")
    if form == "durations":
        frame = frame[["client"]].assign(seconds=1.0)
    frame.to_csv(log, index=False)
    said = stalesim("log", "fit", log, "-o", path, "--no-plots")
    remark = "clients leave the log before its end: w2 at 30 s; "
    assert (remark in said) == (form != "durations")
    assert (remark in path.with_suffix(".md").read_text()) == (form != "durations")
    imported = stalesim("log", "import", log, "-o", tmp_path / "out", "--no-plots")
    early = "clients leave the log early: w2 at 30 s; the timeline counts them as idle"
    assert (early in " ".join(imported.split())) == (form != "durations")
    # A server of rounds would wait for ever; durations do not say who leaves.
    assert ("the world keeps them" in said) == (form == "rounds")
    leave = [group.leave for group in read_any(path).clients.groups.values()]
    assert leave == [None, 30 if form == "times" else None]


def test_a_buffered_server_may_be_any_other(tmp_path: Path) -> None:
    log = log_of(tmp_path, time=50)
    frame = pd.read_csv(log).drop(columns="read_version")
    frame = frame.sort_values("arrived_time")
    frame.assign(commit=np.arange(len(frame)) // 2).to_csv(log, index=False)
    for given, bad in (
        (
            {"kind": "buffered", "size": 4, "sise": 4},
            "protocol.sise is not a known key",
        ),
        ({"kind": "buffered", "size": None}, "must have a size, a window, a grace"),
    ):
        with pytest.raises(UserError, match=bad):
            play_like(log, tmp_path / "like", given)
    with pytest.raises(UserError, match="replicates"):
        play_like(log, tmp_path / "like", "synchronous", changes=("replicates=0",))
    assert not (tmp_path / "like").exists()
    said = stalesim("log", "import", log, "--no-plots", "-o", tmp_path / "own")
    assert "Server: buffered, by the column commit; a commit is of at most 2" in said
    given = {"kind": "synchronous", "size": None}
    study, _ = play_like(log, tmp_path / "like", given)
    kinds = [run["protocol"] for run in study.manifest["runs"]]
    assert kinds == ["buffered", "buffered", "synchronous"]


def test_the_fitted_world_is_as_fast_and_stale_as_the_log(tmp_path: Path) -> None:
    log = log_of(tmp_path, time=1000)
    study, _ = play_like(log, tmp_path / "like", "synchronous")
    assert [run["label"] for run in study.manifest["runs"]] == [
        "log",
        "fitted",
        "synchronous",
    ]
    own, fitted, rounds = timelines.View(study).by_run.to_dict("records")
    # 4 clients of 400 jobs of correlation 0.8 are worth 180: 3 % of the mean, each.
    assert abs(np.log(fitted["commits_per_s"] / own["commits_per_s"])) < 4 * 0.03
    assert fitted["staleness_mean"] == pytest.approx(own["staleness_mean"], abs=0.1)
    played = record(
        loads_any(
            WORLD.replace("PROTOCOL", "synchronous").replace("TIME", "1000"), "phones"
        ),
        tmp_path / "rounds",
    )
    (true,) = timelines.View(played).by_run.to_dict("records")
    assert abs(np.log(rounds["commits_per_s"] / true["commits_per_s"])) < 4 * 0.05


def test_pauses_are_a_stage_of_asynchronous_logs_alone(tmp_path: Path) -> None:
    rng, rows = np.random.default_rng(0), []
    for client in range(2):
        time = 0.0
        for _ in range(200):
            took = rng.gamma(4, 1)
            rows.append((client, time, time + took))
            time += took + (rng.exponential(20) if rng.random() < 0.3 else 0)
    frame = pd.DataFrame(rows, columns=["client", "read_time", "arrived_time"])
    frame.to_csv(tmp_path / "log.csv", index=False)
    tree = world_of(read_log(tmp_path / "log.csv"), tmp_path / "w").tree
    for group in tree["clients"]["groups"].values():
        still, away = group["idle"]["of"]
        assert still == {"law": "constant", "value": 0}
        # A share of 0.3 of 199 has an error of 0.032; of 60 pauses the mean, 13 %.
        assert abs(group["idle"]["weights"][1] - 0.3) < 4 * 0.032
        assert away["law"] in ("expon", "gamma", "weibull_min")
    rounds = log_of(tmp_path, "synchronous", 200)
    tree = world_of(read_log(rounds), tmp_path / "w").tree
    assert all("idle" not in group for group in tree["clients"]["groups"].values())
    assert tree["protocol"] == {"kind": "synchronous"}


def test_versions_are_held_against_times(tmp_path: Path) -> None:
    log = log_of(tmp_path, time=130)
    assert not world_of(read_log(log), tmp_path / "w").remarks
    frame = pd.read_csv(log)
    frame.assign(read_version=frame["read_version"] // 3).to_csv(log, index=False)
    world = world_of(read_log(log), tmp_path / "w")
    assert "a version of 3 arrivals" in world.remarks[0]
    assert world.tree["protocol"] == {"kind": "buffered", "size": 3}
    wrong = frame.assign(read_version=frame["read_version"] + 2 * (frame.index == 40))
    wrong.to_csv(log, index=False)
    (remark,) = world_of(read_log(log), tmp_path / "w").remarks
    assert "1 of " in remark
    assert "first in row 42" in remark
    assert "the scenario does not say" in remark


def test_others_columns_are_mapped(tmp_path: Path) -> None:
    log = log_of(tmp_path, time=60)
    frame = pd.read_csv(log)
    other = tmp_path / "other.csv"
    names = {"client": "cid", "read_time": "start", "arrived_time": "end"}
    frame.rename(columns=names).assign(loss=1.0).to_csv(other, index=False)
    columns = columns_of("client=cid, read_time=start, arrived_time=end")
    mine = import_log(other, tmp_path / "a", columns).table("jobs")
    assert sorted(mine["arrived_time"]) == pytest.approx(
        sorted(frame["arrived_time"] - frame["read_time"].min())
    )
    with pytest.raises(UserError, match=r"must have the column 'cit' that --columns"):
        read_log(other, columns_of("client=cit"))
    with pytest.raises(UserError, match=r"pairs such as client=cid"):
        columns_of("flower")


def test_columns_that_are_not_mapped_are_still_read(tmp_path: Path) -> None:
    """A round that was left out silently made a log of rounds asynchronous."""
    log = tmp_path / "log.csv"
    log.write_text("worker,round,t0,end\na,0,0,2\nb,0,0,4\na,1,4,5\nb,1,4,6\n")
    with pytest.warns(StudyWarning, match="worker as client, end as arrived_time"):
        read = read_log(log, columns_of("read_time=t0"))
    assert read.in_rounds
    assert (read.labels, read.times["arrived_time"].tolist()) == (
        ["a", "b"],
        [2, 4, 5, 6],
    )


def test_common_names_of_columns_are_read_and_said(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("worker,start,finished\na,0,2\nb,1,4\n")
    said = "worker as client, start as read_time, finished as arrived_time; --columns"
    with pytest.warns(StudyWarning, match=said):
        read = read_log(log)
    assert (read.labels, read.times["arrived_time"].tolist()) == (["a", "b"], [2, 4])
    log.write_text("worker,rank,read_time,arrived_time,end\na,0,0,2,2\n")
    with pytest.raises(DataError, match="must have the column client, but has worker"):
        read_log(log)


def test_mini_batch_times_of_pai_are_rounds(tmp_path: Path) -> None:
    path = tmp_path / "job.csv"
    path.write_text(
        ",worker,gpu,time,batch_time_norm\n0,3,25,1,40\n1,5,25,1,50\n2,3,25,2,60\n"
        "3,5,25,2,10\n4,3,25,2,99\n"
    )
    log = read_log(path, columns_of("pai"))
    assert log.repeats == 1
    assert log.times["read_time"].tolist() == [0, 0, 50, 50]
    assert log.times["arrived_time"].tolist() == [40, 50, 110, 60]
    study = import_log(path, tmp_path / "played", columns_of("pai"))
    assert sorted(study.table("jobs")["applied_time"]) == [50, 50, 110, 110]
    (remark,) = world_of(log, tmp_path / "w").remarks
    assert remark.startswith("1 rows are left out")


def test_versions_that_a_log_names_are_held_against_their_own_times(
    tmp_path: Path,
) -> None:
    text = WORLD.replace("PROTOCOL", "buffered, size: 3").replace("TIME", "150")
    jobs = record(loads_any(text, "phones"), tmp_path / "played").table("jobs")
    jobs = jobs[jobs["outcome"].isin(["APPLIED"])]
    assert jobs["commit"].notna().all()
    log = tmp_path / "log.csv"
    named = ["read_version", "commit", "applied_time"]
    jobs[[*COLUMNS, *named]].to_csv(log, index=False)
    world = world_of(read_log(log), tmp_path / "w")
    assert not world.remarks
    assert world.tree["protocol"] == {"kind": "buffered", "size": 3}
    wrong = jobs.assign(read_version=jobs["read_version"] + (jobs.index == 40))
    wrong[[*COLUMNS, *named]].to_csv(log, index=False)
    (remark,) = world_of(read_log(log), tmp_path / "w").remarks
    assert "1 of " in remark


def test_rounds_of_any_durations_follow_each_other(tmp_path: Path) -> None:
    # Summed and subtracted again, some rounds would begin before those before end.
    times = np.random.default_rng(0).gamma(9, 0.1, (200, 3)).round(6)
    frame = pd.DataFrame(times).melt(ignore_index=False, var_name="client")
    path = tmp_path / "log.csv"
    frame.rename(columns={"value": "seconds"}).to_csv(path, index_label="round")
    log = read_log(path)
    assert log.times["arrived_time"].max() == pytest.approx(times.max(axis=1).sum())


def test_more_clients_than_can_be_groups_are_refused(tmp_path: Path) -> None:
    path, number = tmp_path / "log.csv", 10_001
    lines = [f"{client},0,{client}" for client in range(1, number + 1)]
    path.write_text("\n".join(["client,read_time,arrived_time", *lines]) + "\n")
    for make in (
        lambda: play_like(path, tmp_path / "like", "synchronous"),
        lambda: world_of(read_log(path), tmp_path / "fitted"),
    ):
        with pytest.raises(UserError, match=r"at most 10,000 clients .* got 10,001"):
            make()
    assert [file.name for file in tmp_path.iterdir()] == ["log.csv"]
