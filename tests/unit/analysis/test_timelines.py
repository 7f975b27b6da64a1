"""Measurements of timelines: by hand, and against the closed forms that they match."""

import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.text import Text

from stalesim.analysis import frames, speeds, timelines
from stalesim.analysis.figures import gantt, style
from stalesim.analysis.figures.files import save_all
from stalesim.analysis.laws import means
from stalesim.analysis.theory import gossip
from stalesim.analysis.timelines import drawing, measures
from stalesim.analysis.timelines.theory import closed_forms
from stalesim.analysis.timelines.view import view
from stalesim.simulator.files.study import Study
from stalesim.simulator.files.summary import Summary
from stalesim.simulator.files.timeline import Jobs, Outcome
from stalesim.simulator.parts.base import tag
from stalesim.simulator.parts.catalogue import parts
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.studies.saved import record
from tests.oracles import queues as oracles
from tests.oracles import tallies
from tests.unit.analysis.drawn import assert_apart

NO_COMMIT = 2**63 - 1
NAN = np.nan
TIMES = ("read", "begun", "computed", "sent", "arrived", "applied")
JOBS = pd.DataFrame(
    [
        (1, 0, 0.0, 0.25, 1.0, 1.0, 1.5, 2.0, 0, 1, "APPLIED", 1),
        (2, 0, 0.0, 0.25, 2.0, 2.0, 3.0, 3.0, 0, 2, "APPLIED", 2),
        (1, 1, 2.0, 2.25, 4.0, 4.0, 4.0, 4.0, 1, 3, "APPLIED", 1),
        (2, 1, 3.0, 3.25, 5.0, 5.0, NAN, NAN, 2, NO_COMMIT, "LOST", 3),
        (1, 2, 4.0, 4.25, NAN, NAN, NAN, NAN, 3, NO_COMMIT, "CRASHED", 0),
        (1, 3, 9.0, NAN, NAN, NAN, NAN, NAN, 3, NO_COMMIT, "IN_FLIGHT", 0),
    ],
    columns=[
        *("client", "job", *(f"{name}_time" for name in TIMES)),
        *("read_version", "commit", "outcome", "upload_messages"),
    ],
).assign(run=0, kind="work", staleness=[0, 1, 1, NAN, NAN, NAN])
INCIDENTS = pd.DataFrame(
    {"run": 0, "time": [5.0, 6.0], "client": [1, 2], "incident": ["CRASHED", "GAVE_UP"]}
).assign(messages=1)
RUNS = pd.DataFrame({"run": [0], "group": "a", "virtual_s": 10.0, "commits": 3}).assign(
    num_clients=3, start_s=NAN
)


def of_run(**more: Any) -> pd.DataFrame:
    """Returns the measures of the run of these jobs."""
    runs, ages, _ = tallies.tally(JOBS, INCIDENTS, RUNS.assign(**more))
    return measures.by_run(runs, ages)


def test_a_run_is_measured() -> None:
    found = of_run().iloc[0]
    expected = {
        "commits_per_s": 0.75,  # 3 until 4 s
        "staleness_mean": 2 / 3,  # 0, 1 and 1
        "staleness_50": 1,
        "staleness_max": 1,
        "applied": 0.6,
        "rejected": 0,
        "lost": 0.2,
        "crashed": 0.2,
        "waiting_mean": 0.5 / 3,
        "queue_length": 0.05,  # Little: 0.5 s of waiting in 10 s
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value), name
    wide = of_run(jobs=12, waves=4).iloc[0]
    assert wide[["jobs", "waves", "wave_width"]].tolist() == [12, 4, 3]
    for unknown in ({}, {"jobs": 12, "waves": None}):
        assert np.isnan(of_run(**unknown)["wave_width"]).all()
    two = pd.DataFrame(
        {"run": [0, 1], "group": "a", "lost": [0.1, 0.3], "staleness_max": [3, 7]}
    )
    mean = measures.by_group(two).iloc[0]
    assert mean["lost"] == pytest.approx(0.2)
    assert (mean["staleness_max"], mean["replicates"]) == (7, 2)


def test_clients_are_measured() -> None:
    runs, _, clients = tallies.tally(JOBS, INCIDENTS, RUNS)
    found = measures.by_client(runs, clients).set_index("client")
    assert found["utilisation"].tolist() == pytest.approx([0.25, 0.35, 0.0])
    assert found["uploads"].tolist() == [2, 5, 0]
    assert found["incidents"].tolist() == [1, 1, 0]
    assert found["staleness_mean"].tolist()[:2] == [0.5, 1.0]
    assert np.isnan(found.loc[3, "staleness_mean"])  # pyright: ignore
    parts = pd.Series(["x", "x", "y"], index=[1, 2, 3])
    summary = measures.by_part(found.reset_index(), parts)
    uploads = summary.loc[summary["measure"] == "uploads"].set_index("clients")
    assert uploads.loc["x", "mean"] == 3.5
    assert uploads.loc["x", "number"] == 2


def test_stages_follow_each_other() -> None:
    table = gantt.stages(JOBS, INCIDENTS)
    mine = table.loc[(table["client"] == 1) & (table["job"] == 0)]
    assert mine["stage"].tolist() == ["download", "computing", "upload", "waiting"]
    assert mine["start"].tolist() == [0.0, 0.25, 1.0, 1.5]
    assert mine["end"].tolist() == [0.25, 1.0, 1.5, 2.0]
    crashed = table.loc[(table["client"] == 1) & (table["job"] == 2)]
    assert crashed["end"].max() == 5.0
    assert gantt.first_seconds(JOBS, 3, 2) == 3.0


EXPON = {"compute": {"law": "expon", "scale": 1}, "number": 4}
UNEQUAL = {"compute": {"law": "expon", "scale": "m"}, "number": 4}
GAMMA = {"compute": {"law": "gamma", "a": 2, "scale": 0.5}, "number": 4}
LINKS = {
    **GAMMA,
    "idle": {"law": "constant", "value": 0.5},
    "upload": {"latency": {"law": "uniform", "loc": 0.1, "scale": 0.2}},
    "download": {"bandwidth": 1000},
}
LATTICE = {"compute": {"law": "poisson", "mu": "m", "shift": 1}, "number": 3}
ASYNC: dict[str, Any] = {"kind": "asynchronous"}
ROUTED: dict[str, Any] = {"kind": "routed", "tasks": 6, "weights": 1}
WORLDS: dict[str, dict[str, Any]] = {
    "unequal": {"clients": UNEQUAL, "protocol": ASYNC},
    "gamma": {"clients": GAMMA, "protocol": ASYNC},
    "links": {"clients": LINKS, "protocol": ASYNC, "job": {"download_bytes": 200}},
    "synchronous": {"clients": LATTICE, "protocol": {"kind": "synchronous"}},
    "t_synchronous": {"clients": EXPON, "protocol": {"kind": "t_synchronous", "t": 2}},
    "buffered": {"clients": GAMMA, "protocol": {"kind": "buffered", "size": 2}},
    "routed": {"clients": UNEQUAL, "protocol": ROUTED},
    "repairman": {
        "clients": EXPON,
        "protocol": ASYNC,
        "server": {"service": {"law": "expon", "scale": 0.4}},
    },
}
SPEED = ("commits_per_s", "contributions_per_s")
KNOWN = {
    "routed": {*SPEED, "staleness_mean", "queue_length", "waiting_mean"},
    "unequal": {*SPEED, "staleness_mean", "queue_length", "waiting_mean"},
    "gamma": {*SPEED, "staleness_mean", "queue_length", "waiting_mean"},
    "links": {*SPEED, "queue_length", "waiting_mean"},
    "synchronous": {*SPEED, "staleness_mean", "staleness_max"},
    "t_synchronous": {*SPEED, "staleness_mean"},
    "buffered": {*SPEED, "staleness_mean"},
    "repairman": {*SPEED, "staleness_mean", "queue_length", "waiting_mean"},
}


def entry_of(world: dict[str, Any], number: int, **sizes: float) -> dict[str, Any]:
    """Returns what a manifest says of a run of a world."""
    kind = world["protocol"]["kind"]
    part = next(part for part in parts("protocols") if tag(part) == kind)
    facts = part.model_validate(world["protocol"]).described(number)
    return {"scenario": world, "num_clients": number, "facts": facts, **sizes}


def recorded(folder: Path, **entries: Any) -> Study:
    tree = {"name": "world", "seed": 1, "stop": {"time": 4000}, **entries}
    return record(WorldScenario.model_validate(tree), folder)


@pytest.mark.parametrize("name", WORLDS)
def test_what_is_measured_matches_its_closed_form(name: str, tmp_path: Path) -> None:
    study = recorded(tmp_path, **WORLDS[name])
    entry = study.manifest["runs"][0]
    forms = closed_forms(entry)
    assert set(forms.of_run) == KNOWN[name]
    seen = view(study)
    found = seen.by_run.iloc[0]
    assert 0 < found["start_s"] < 200
    # Over 4,000 s there are at least 900 cycles of each client; relative errors of
    # means are below 1/sqrt(900) = 3.3 % at one standard deviation of laws whose
    # standard deviation is at most their mean, and sums over clients are tighter. A
    # fixed seed makes this a regression test.
    for column, value in forms.of_run.items():
        assert found[column] == pytest.approx(value, rel=0.06, abs=1e-9), column
    for column, values in forms.of_clients.items():
        assert seen.by_client[column].to_numpy() == pytest.approx(values, rel=0.08), (
            column
        )
    table = gantt.stages(frames.jobs(study), seen.incidents)
    after = table.groupby("client")["start"].shift(-1)
    assert np.isfinite(table["end"]).all()
    assert not (table["end"] > after + 1e-9).any()  # nobody does two things at once


@pytest.mark.parametrize("keep", ["everything", "summary"])
@pytest.mark.parametrize(
    ("protocol", "commits_per_s", "contributions_per_s"),
    [
        ({"kind": "synchronous"}, 1 / 3, 4 / 3),
        ({"kind": "buffered", "size": 2}, 2 / 3, 4 / 3),
        (ASYNC, 4 / 3, 4 / 3),
    ],
)
def test_the_end_of_a_run_between_two_commits_changes_no_rate(
    protocol: dict[str, Any],
    commits_per_s: float,
    contributions_per_s: float,
    keep: str,
    tmp_path: Path,
) -> None:
    # All four clients end each job of 3 s at once, the last ones at 18 s.
    clients = {"number": 4, "compute": {"law": "constant", "value": 3}}
    world = {"clients": clients, "protocol": protocol, "record": keep}
    seen = view(recorded(tmp_path, **world, stop={"time": 20}))
    found = seen.by_run.iloc[0]
    assert found["start_s"] == 3
    assert found["commits_per_s"] == commits_per_s
    assert found["contributions_per_s"] == contributions_per_s
    known = seen.forms["base"].of_run
    assert found[[*SPEED]].tolist() == pytest.approx([known[name] for name in SPEED])


def test_the_law_of_staleness_is_drawn_where_it_is_known(tmp_path: Path) -> None:
    study = recorded(tmp_path, **WORLDS["unequal"])
    forms = closed_forms(study.manifest["runs"][0])
    assert forms.law is not None
    ages, chances = forms.law
    assert chances.sum() == pytest.approx(1, abs=1e-4)
    assert ages @ chances == pytest.approx(3, abs=1e-2)
    seen = view(study)
    shares = seen.histogram(seen.runs).set_index("staleness")["share"]
    # 8,000 contributions: a share's standard error is below 0.006.
    for age in range(5):
        assert shares[age] == pytest.approx(chances[age], abs=0.02)


@pytest.mark.parametrize(
    "entries",
    [
        {"availability": {"kind": "periodic", "on": 0.5}},
        {"crashes": {"after": {"law": "expon"}, "down": {"law": "expon"}}},
        {"compute": {"law": "mixture", "of": [], "weights": []}},
        {"compute": {"law": "expon", "scale": {"law": "expon"}}},
        {"compute": None},
    ],
)
def test_nothing_is_guessed_where_an_assumption_fails(entries: dict[str, Any]) -> None:
    world = {"clients": {**EXPON, **entries}, "protocol": ASYNC}
    forms = closed_forms(entry_of(world, 4))
    assert "commits_per_s" not in forms.of_run
    assert forms.law is None
    dear = closed_forms(entry_of({**world, "clients": EXPON}, 4, overhead_s=0.5))
    assert dear == ({"staleness_mean": 3}, {}, None)
    bounded = {"clients": EXPON, "protocol": {**ASYNC, "staleness_bound": 3}}
    assert closed_forms(entry_of(bounded, 4)).of_run == {}
    stopped = {"clients": EXPON, "protocol": {**ASYNC, "restarts": True}}
    assert closed_forms(entry_of(stopped, 4)) == ({}, {}, None)


def test_availability() -> None:
    times = {
        "kind": "on_off",
        "on": {"law": "expon", "scale": 3},
        "off": EXPON["compute"],
    }
    world = {"clients": {**EXPON, "availability": times}, "protocol": ASYNC}
    shares = closed_forms(entry_of(world, 2)).of_clients["available"]
    assert shares.tolist() == [0.75, 0.75]
    assert means({"law": "constant", "value": "2*m"}, 4).tolist() == [2, 4, 6, 8]


@pytest.mark.parametrize(
    "protocol",
    [ASYNC, {"kind": "buffered", "size": 2}, {"kind": "t_synchronous", "t": 2}],
    ids=lambda protocol: protocol["kind"],
)
def test_laws_without_a_mean_have_no_closed_form(protocol: dict[str, Any]) -> None:
    """Neither a speed of 0 nor a staleness was ever reached; warnings are errors."""
    clients = {"compute": {"law": "pareto", "b": 0.9}, "number": 6}
    forms = closed_forms(entry_of({"clients": clients, "protocol": protocol}, 6))
    assert forms == ({}, {}, None)


def test_speed_is_in_commits_and_in_contributions(tmp_path: Path) -> None:
    worlds = {"rounds": {"protocol": {"kind": "synchronous"}}, "each": {}}
    study = recorded(
        tmp_path, clients=EXPON, protocol=ASYNC, stop={"time": 200}, variants=worlds
    )
    shown = dict(timelines.tables(study))
    speeds = next(iter(shown.values())).set_index("variant")
    found = speeds[["server updates/s", "client updates/s"]].map(
        lambda text: text.split()
    )
    (rounds, theory_of_rounds), (work, theory_of_work) = found.loc["rounds"]
    assert float(work) == pytest.approx(4 * float(rounds), rel=0.05)
    whole = float(theory_of_rounds.strip("[]"))
    assert float(theory_of_work.strip("[]")) == pytest.approx(4 * whole, rel=1e-3)
    assert (
        found.loc["each", "server updates/s"] == found.loc["each", "client updates/s"]
    )


def test_tasks_are_computed_one_after_the_other_and_wait_before(tmp_path: Path) -> None:
    """Utilisation was 3.9, for a task's computing was said to begin at its read."""
    clients = {"compute": {"law": "expon", "scale": "m*m"}, "number": 3}
    study = recorded(tmp_path, clients=clients, protocol=ROUTED, stop={"time": 900})
    jobs = study.table("jobs").sort_values(["client", "begun_time"])
    before = jobs.groupby("client")["computed_time"].shift(1)
    assert not (jobs["begun_time"] < before - 1e-9).any()
    idled = jobs.loc[jobs["begun_time"] > before + 1e-9]
    assert (idled["begun_time"] == idled["read_time"]).all()
    shown = list(dict(timelines.tables(study)).values())
    used = shown[-1]["utilisation"].str.split().str[0].astype(float)
    assert used.max() <= 1
    assert used.iloc[-1] > 0.9
    for table in shown[1:]:
        if "queued (s)" in table:
            assert float(table["queued (s)"].iloc[-1].split()[0]) > 1
    assert sum("queued (s)" in table for table in shown) == 2


def test_figures_and_tables_of_many_clients_and_groups(tmp_path: Path) -> None:
    study = recorded(
        tmp_path,
        clients={
            "compute": {"law": "expon"},
            "loss": {"chance": 0.2, "timeout": 1, "retries": 1},
            "groups": {"slow": {"number": 30}, "fast": {"number": 5}},
        },
        protocol=ASYNC,
        stop={"time": 20},
        replicates=2,
        variants={"a_$": {}, "sync": {"protocol": {"kind": "synchronous"}}},
    )
    shown = dict(timelines.tables(study))
    assert sum(speeds.TITLE in title for title in shown) == 1
    assert set(shown["sync: 35 clients"]["clients"]) == {"slow (30)", "fast (5)"}
    drawn = timelines.standard(study, 3.0)
    paths = [*save_all(study, drawn, timelines.report.caption, tmp_path)]
    names = ["gantt.png", "staleness.png", "comparison.png", "stragglers.png"]
    assert [path.name for path in paths] == names
    assert all(path.stat().st_size > 10_000 for path in paths)
    seen = view(study)
    figure = gantt.gantt(
        study, [0] * 6, frames.jobs(study), seen.rows, seen.incidents, 3.0
    )
    assert isinstance(figure, Figure)
    assert len(figure.axes) == gantt.MOST_PANELS
    assert "4 of 6 groups" in str(figure.get_suptitle())
    assert "30 of 35 clients" in figure.axes[0].get_title(loc="left")


@pytest.mark.parametrize("sweep", [{}, {"clients.number": [2, 3, 60]}])
def test_worlds_are_compared(tmp_path: Path, sweep: dict) -> None:
    study = recorded(
        tmp_path,
        clients={"number": 2, "compute": {"law": "expon"}},
        protocol=ASYNC,
        stop={"commits": 60},
        replicates=2,
        variants={"a": {}, "b": {"protocol": {"kind": "buffered", "size": 2}}},
        sweep=sweep,
    )
    compared = drawing._compared(view(study))
    known = compared.loc[compared["variant"] == "a", "contributions_per_s_theory"]
    # K clients with exponential delays of mean 1 s contribute K times a second.
    assert sorted(known.round(9).unique()) == ([2, 3, 60] if sweep else [2])
    assert compared["x"].isna().all() == (not sweep)
    figure = drawing.comparison(compared, "x")
    assert len(figure.axes) == len(drawing.PANELS)
    assert (figure.axes[0].get_xscale() == "log") == bool(sweep)


def test_labels_beside_long_names_are_apart() -> None:
    table: dict[str, Any] = {column: [1.0, 2.0] for column in drawing.PANELS}
    table |= {f"{column}_theory": np.nan for column in drawing.PANELS}
    long = [f"{name} with a name that fills its line" for name in ("first", "second")]
    frame = pd.DataFrame(table | {"variant": long, "group": long, "x": np.nan})
    figure = drawing.comparison(frame.assign(parameter=""), "x")
    assert_apart(figure)
    labels = [axes.xaxis.label.get_window_extent() for axes in figure.axes]
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(labels))


def test_bars_wider_than_a_unit_of_staleness_say_what_they_show() -> None:
    frame = pd.DataFrame({"staleness": range(21), "count": 5})
    figure = gantt.staleness({"a": frame}, {}, {})
    stairs: Any = figure.axes[0].patches[0]
    shares, edges, _ = stairs.get_data()
    assert np.diff(edges).max() > 1  # a bar has one of 21 equal shares for each unit
    np.testing.assert_allclose(shares, 1 / 21)
    assert figure.get_supylabel().startswith(style.SHARE)


def test_gossip_counts_commits_and_reports_its_spectral_gap(tmp_path: Path) -> None:
    study = recorded(
        tmp_path,
        clients={"number": 8, "compute": {"law": "expon"}},
        protocol={"kind": "gossip", "graph": {"kind": "ring"}, "initiator": "every"},
        stop={"commits": 6000},
    )
    jobs = frames.jobs(study)
    staleness = timelines.contributions(jobs)["staleness"]
    # K jobs are always in flight, averagings take no time: K - 1 commits by the closed
    # form, up to the edges of the run, where at most K jobs miss at most the largest.
    assert abs(staleness.mean() - 7) < 8 * staleness.max() / 6000
    gap = timelines.spectral_gap(study.table("rows"), 8)
    ring = [(k, (k + 1) % 8) for k in range(8)]
    exact = gossip.spectral_gap(gossip.expected_pairwise_averaging(8, ring))
    # 6,000 draws of 8 edges: each frequency has a standard error below 0.0043, and the
    # eigenvalue of the mean matrix is a mean of them with weights below 1.
    assert abs(gap - exact) < 5 * 0.0043
    shown = dict(timelines.tables(study))
    assert "world: averaging between workers" in shown
    words = [*shown, *(str(name) for frame in shown.values() for name in frame)]
    words += [
        t.get_text() for _, f in timelines.standard(study) for t in f.findobj(Text)
    ]
    assert any("worker updates" in text for text in words)
    assert not any("server update" in text.lower() for text in words)


@pytest.mark.parametrize("average", ["all", "neighbours"])
def test_gradients_of_a_round_of_gossip_are_not_stale(
    average: str, tmp_path: Path
) -> None:
    study = recorded(
        tmp_path,
        clients={"number": 6, "compute": {"law": "expon"}},
        protocol={"kind": "gossip", "graph": {"kind": "ring"}, "average": average}
        if average == "neighbours"
        else {"kind": "gossip", "average": average},
        stop={"commits": 60},
    )
    applied = timelines.contributions(frames.jobs(study))
    assert len(applied) == 60
    assert applied["staleness"].tolist() == [0] * 60
    assert (
        np.isnan(frames.jobs(study)["staleness"]).sum() == len(study.table("jobs")) - 60
    )
    (_, table), *_ = timelines.tables(study)
    assert table["mean staleness"].tolist() == ["0"]


def over(table: pd.DataFrame, in_flight: int) -> float:
    """Returns the end of the start by statistics, which the twin confirms."""
    nothing = dict.fromkeys(("job", "read_version", "uploads"), 0)
    told = {"client": 1, "commit": 1, "sent_time": NAN, **nothing} | dict(table.items())
    outcomes = [Outcome[name] for name in table["outcome"]]
    told |= {"refresh": 0, "outcome": np.array(outcomes, int)}
    columns = {
        name: np.broadcast_to(told[name], len(table)).copy() for name in Jobs._fields
    }
    columns["client"] = columns["client"].astype(int) - 1
    found = Summary(3, in_flight)
    found.count(Jobs(**columns))
    found.finish(10.0)
    np.testing.assert_equal(found.over, tallies.end_of_start(table, in_flight))
    return found.over


def test_the_start_is_over_when_the_jobs_that_filled_the_system_have_ended() -> None:
    # Two jobs are in flight at once. The first to read end at 2 and 3 s; one is left
    # to be applied then, after two that were: too few to speak of a steady state.
    assert np.isnan(over(JOBS, 2))
    job = {"kind": "work", "outcome": "APPLIED", "client": 1, "begun_time": 0.0}
    times = [(0.0, 5.0), (0.0, 2.0), (2.0, 4.0), (4.0, 6.0), (5.0, 7.0), (6.0, 8.0)]
    frame = pd.DataFrame(
        [
            {**job, "read_time": a, "computed_time": b, "arrived_time": b}
            | {"applied_time": b}
            for a, b in times
        ]
    )
    assert over(frame, 2) == 5.0  # of the slower of the two that read at 0 s
    lost = frame.assign(applied_time=frame["applied_time"].mask(frame.index == 0))
    lost["outcome"] = lost["outcome"].mask(frame.index == 0, "LOST")
    assert over(lost, 2) == 5.0
    going = lost.assign(outcome=lost["outcome"].replace("LOST", "IN_FLIGHT"))
    assert np.isnan(over(going, 2))
    assert np.isnan(over(frame.iloc[:0], 2))


@pytest.mark.parametrize("law", ["constant", "gamma", "expon"])
def test_the_mean_after_the_start_is_unbiased_where_that_of_the_run_is_not(
    law: str, tmp_path: Path
) -> None:
    compute = {
        "constant": {"law": "constant", "value": 1},
        "gamma": {"law": "gamma", "a": 16, "scale": 1 / 16},
        "expon": {"law": "expon"},
    }[law]
    study = recorded(
        tmp_path,
        clients={"number": 32, "compute": compute},
        protocol=ASYNC,
        stop={"commits": 32 * 40},
        replicates=40,
    )
    seen = view(study)
    kept = seen.by_run["staleness_mean"].to_numpy()
    runs = frames.runs(study).assign(start_s=np.nan)
    runs, ages, _ = tallies.tally(frames.jobs(study), seen.incidents, runs)
    whole = measures.by_run(runs, ages)["staleness_mean"]
    # C - 1 = 31 for any law: each commit ages the 31 other jobs by one. What the 32
    # jobs under way at the end have aged is missing from a whole run: K / 2 commits
    # each for constant times, K for exponential ones, so 0.4 and 0.8 of 40 K commits.
    assert whole.mean() < 31 - 0.3
    error = kept.std(ddof=1) / np.sqrt(40)
    # After the start the jobs under way are old from the beginning, but one is new, K
    # commits too young, and all K are some K T / K too young, where T, the largest of K
    # exponential times, is about ln K: K (1 + ln K) in all, over at least 30 K commits;
    # less for the other laws, whose tails are shorter.
    assert abs(kept.mean() - 31) < (1 + np.log(32)) / 30 + 4 * error
    if law == "constant":
        assert kept.tolist() == [31.0] * 40


def test_a_run_that_is_too_short_says_so(tmp_path: Path) -> None:
    study = recorded(
        tmp_path, clients={**EXPON, "number": 50}, protocol=ASYNC, stop={"commits": 60}
    )
    title, table = next(timelines.tables(study))
    assert "after the start" in title
    assert table["start (s)"].tolist() == ["not over"]
    jobs = frames.jobs(study)
    whole = timelines.contributions(jobs)["staleness"].mean()
    assert table["mean staleness"].tolist() == [f"{whole:.4g} [49]"]


def test_a_million_like_clients_have_closed_forms_at_once() -> None:
    number = 1_000_000
    groups = {"a": {"number": number // 2}, "b": {"number": number // 2}}
    clients = {"compute": {"law": "expon", "scale": 2}, "groups": groups}
    begun = time.process_time()
    found = closed_forms(entry_of({"clients": clients, "protocol": ASYNC}, number))
    assert found.of_run["staleness_mean"] == number - 1
    assert found.of_run["commits_per_s"] == pytest.approx(number / 2)
    assert found.of_clients["staleness_mean"].tolist()[:2] == [number - 1.0] * 2
    assert found.law is not None
    ages, chances = found.law
    assert ages.size <= 4096
    assert np.trapezoid(chances, ages) == pytest.approx(1, abs=1e-3)
    world = {"clients": clients, "protocol": {"kind": "synchronous"}}
    rounds = closed_forms(entry_of(world, number))
    harmonic = oracles.exponential_order_statistic(0.5, number, number)
    assert rounds.of_run["commits_per_s"] == pytest.approx(1 / harmonic, rel=1e-9)
    # 9 ms a client, as it was, are 2.5 hours.
    assert time.process_time() - begun < 20


@pytest.mark.parametrize("name", WORLDS)
def test_like_clients_have_the_closed_forms_of_each_written_out(name: str) -> None:
    world = WORLDS[name]
    number = world["clients"]["number"]
    own = {k: v for k, v in world["clients"].items() if k != "number"}
    if "m" in (own["compute"].get("scale"), own["compute"].get("mu")):
        pytest.skip("m counts within a group")
    groups = {f"g{k}": {"number": 1} for k in range(number)}
    split = {**world, "clients": {**own, "groups": groups}}
    size = world.get("job", {}).get("download_bytes", 0)
    one, other = (
        closed_forms(entry_of(each, number, download_bytes=size))
        for each in (world, split)
    )
    assert one.of_run == pytest.approx(other.of_run, rel=1e-9)
    assert one.of_clients.keys() == other.of_clients.keys()
    for column, values in one.of_clients.items():
        assert values == pytest.approx(other.of_clients[column], rel=1e-12)


def test_pictures_of_many_clients_have_few_lines_and_ticks(tmp_path: Path) -> None:
    study = recorded(
        tmp_path,
        clients={"number": 3000, "compute": {"law": "expon"}},
        protocol=ASYNC,
        stop={"commits": 9000},
    )
    figure = dict(timelines.standard(study))["gantt"]
    (axes,) = figure.axes
    assert len(axes.get_yticks()) <= gantt.MOST_CLIENTS
    assert len(axes.patches) < 400
    assert len(axes.collections) < 5
    commits = next(line for line in axes.get_lines() if line.get_marker() == "|")
    assert 500 < len(np.asarray(commits.get_xdata())) <= gantt.TICKS
    assert "30 of 3000 clients" in axes.get_title(loc="left")
    (bars,) = (c for c in axes.collections if isinstance(c, PolyCollection))
    assert len(bars.get_paths()) < 400
    drawn = {round(bar.get_extents().y0 + 0.31) for bar in bars.get_paths()}
    assert len(drawn) >= 25  # nine tenths of them end a job
