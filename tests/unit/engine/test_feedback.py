"""Worlds that ask for numerics: one run whatever its pieces, and what is refused."""

from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import pytest

from stalesim.simulator import studies
from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.engine.checking import check
from stalesim.simulator.engine.of_run import set_up
from stalesim.simulator.engine.simulation import prepare
from stalesim.simulator.files.timeline import NO_COMMIT
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.scenario.reading import validated
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.scenario.study import Run, expand, merge
from stalesim.simulator.studies.planning import plan
from stalesim.simulator.studies.saved import record
from stalesim.simulator.world.answers import AnswerLog, Answers
from stalesim.simulator.world.cycle import Cycle
from tests.runs import execute, prepared
from tests.support import SGD, Memory, scenario

PREFER = {"kind": "power_of_choice", "candidates": 4}
TREE: dict[str, Any] = {
    **SGD,
    "name": "asking",
    "clients": {
        "compute": {"law": "expon", "scale": "m"},
        "selection": {"in_flight": 3, "prefer": PREFER},
    },
    "protocol": {"kind": "synchronous"},
    "stop": {"commits": 80},
    "evaluate": {"every": {"commits": 10}},
}
TABLES = {
    "commits": ("time", "loss", "gradient_norm", "num_contributions"),
    "jobs": ("client", "read_time", "arrived_time", "commit"),
    "evaluations": ("time", "test_accuracy"),
}


def tables(memory: Memory) -> list[np.ndarray]:
    return [memory.column(t, name) for t, names in TABLES.items() for name in names]


@pytest.mark.parametrize("kind", ["synchronous", "asynchronous"])
def test_pieces_of_any_length_give_the_same_run(kind: str) -> None:
    found = []
    for chunk in (4096, 3):
        changes = {"protocol": {"kind": kind}, "engine": {"chunk": chunk}}
        run = prepared(merge(TREE, changes))
        memory, (end,) = execute([run])
        assert end["feedback"] == "clients.selection.prefer asks for losses"
        found.append(tables(memory))
    found.append(tables(execute([run])[0]))  # of before, nothing is remembered
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, same)


def test_jobs_of_a_run_that_ends_early_are_those_of_its_answers() -> None:
    whole, _ = execute([prepared(TREE)])
    accuracy = whole.column("evaluations", "test_accuracy")
    goal = {"target": {"test_accuracy": float(accuracy[4])}}
    early, (end,) = execute([prepared(merge(TREE, {"stop": goal}))])
    assert end["stop"] == "target"
    clients = early.column("jobs", "client")
    assert 0 < clients.size < whole.column("jobs", "client").size
    kept = np.flatnonzero(early.column("jobs", "commit") != NO_COMMIT)
    np.testing.assert_array_equal(
        clients[kept], whole.column("jobs", "client")[: kept.size]
    )


class Counting(Asynchronous):
    """Asks at some commits, and does the same whatever is answered."""

    kind: Literal["asynchronous"] = "asynchronous"
    asks: ClassVar[tuple[str, ...]] = ("losses", "norms", "metrics")
    answers: ClassVar[list[tuple[Any, ...]]] = []

    def play(self, world: Any, recorder: Any) -> None:
        def arrive(client: int) -> None:
            recorder.commit((client,))
            if recorder.version % 7 == 0:
                world.ask(look, client)
            else:
                cycle.again(client)

        def look(client: int) -> None:
            a = world.answers
            told = (a.losses, a.norms, a.seconds, a.staleness)
            self.answers.append((*(t.copy() for t in told), a.metrics))
            cycle.again(client)

        cycle = Cycle(world, recorder.read, arrive, recorder.lose)
        cycle.start()


def test_answers_are_the_numbers_of_the_tables() -> None:
    plain = {"clients": {"selection": None}, "protocol": {"kind": "asynchronous"}}
    tree = merge(TREE, plain)
    usual, _ = execute([prepared(tree)])
    asking = scenario(tree)
    asking = asking.model_copy(update={"protocol": Counting()})
    Counting.answers.clear()
    memory, _ = execute([prepare(Run(0, "base", {}, 0, 1, asking))])
    for one, other in zip(tables(usual), tables(memory), strict=True):
        np.testing.assert_array_equal(one, other)
    commits = {c: memory.column("commits", c) for c in ("client", "loss", "time")}
    norm, stale = (
        memory.column("commits", c) for c in ("gradient_norm", "staleness_max")
    )
    jobs = {c: memory.column("jobs", c) for c in ("commit", "read_time")}
    order = np.argsort(jobs["commit"], kind="stable")
    seconds = commits["time"] - jobs["read_time"][order][: commits["time"].size]
    accuracy = memory.column("evaluations", "test_accuracy")
    assert len(Counting.answers) == 80 // 7
    for number, told in enumerate(Counting.answers):
        made = 7 * (number + 1)
        for client in range(5):
            mine = np.flatnonzero(commits["client"][:made] == client)
            last = [each[client] for each in told[:4]]
            if not mine.size:
                assert np.isnan(last).all()
                continue
            at = mine[-1]
            expected = [commits["loss"][at], norm[at], seconds[at], stale[at]]
            np.testing.assert_allclose(last, expected, rtol=1e-6)
        assert told[4]["test_accuracy"] == accuracy[made // 10]


def test_what_was_heard_is_kept_and_told_again() -> None:
    log = AnswerLog(("norms", "metrics"), "a part", "")
    one, two = np.array([2, 0, 2], np.int32), np.array([1], np.int32)
    log.add(one, {"norms": np.array([1.0, 2.0, 3.0])}, {"x": 0.5})
    log.add(two, {"norms": np.array([4.0])}, {})
    log.answer()
    log.answer()  # nothing has happened since
    log.add(two, {"norms": np.array([9.0])}, {"x": 0.75})
    again = AnswerLog(("norms", "metrics"), "a part", "")
    again.restore(log.state())
    again.answer()
    answers = Answers(4)
    for number, (norms, x) in enumerate(
        [([2, 4, 3, np.nan], 0.5), ([2, 4, 3, np.nan], 0.5), ([2, 9, 3, np.nan], 0.75)]
    ):
        again.tell(number, answers)
        np.testing.assert_array_equal(answers.norms, norms)
        assert answers.metrics == {"x": x}
    with pytest.raises(ScenarioError, match="timing must be simulated together"):
        again.tell(3, answers)


def test_the_recorded_timeline_is_replayed_into_another_algorithm(
    tmp_path: Path,
) -> None:
    asking = studies.simulate(validated(TREE), tmp_path / "asking")
    again = studies.simulate(
        validated(
            merge(
                TREE,
                {
                    "timeline": {"replay": str(tmp_path / "asking")},
                    "algorithm": {"step_size": 0.05, "local_steps": 2},
                },
            )
        ),
        tmp_path / "again",
    )
    pd.testing.assert_frame_equal(asking.table("jobs"), again.table("jobs"))
    one, other = (s.table("commits")["loss"].to_numpy() for s in (asking, again))
    assert not np.array_equal(one, other)
    assert "feedback" in asking.manifest["runs"][0]
    assert "feedback" not in again.manifest["runs"][0]


def test_epsilons_of_what_is_told_without_noise_are_not_formal(tmp_path: Path) -> None:
    noise = {"clip_bound": 1.0, "multiplier": 2.0}
    tree = merge(TREE, {"stop": {"commits": 3}, "algorithm": {"mechanism": noise}})
    studies.simulate(validated(tree), tmp_path / "asking")
    for changes, told in (
        (
            {},
            "asks for losses, which clients report without noise",
        ),
        ({"timeline": {"replay": str(tmp_path / "asking")}}, "asks for losses"),
        ({"clients": {"selection": {"prefer": None}}}, ""),
    ):
        one = set_up(Run(0, "base", {}, 0, 1, scenario(merge(tree, changes))))
        assert {each.formal for each in one.guarantees} == {not told}
        assert told in one.guarantees[0].why


def test_each_run_that_asks_is_a_task_of_its_own() -> None:
    tree = {"replicates": 2, "sweep": {"algorithm.step_size": [0.1, 0.2]}}
    runs = expand(scenario(merge(TREE, tree)))
    for backend in ("cpu", "gpu"):
        assert [(t.mode, len(t.runs)) for t in plan(runs, backend=backend)] == [
            ("compiled", 1)
        ] * 4
    digests = {set_up(run).timeline.digest for run in runs}
    assert len(digests) == 4  # another step may choose other clients


def test_what_cannot_be_answered_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="timing must be simulated together"):
        record(scenario(TREE), tmp_path / "t")
    world = {key: TREE[key] for key in ("name", "clients", "protocol", "stop")}
    world["clients"] = world["clients"] | {"number": 5}
    with pytest.raises(ValueError, match="must not need training in a world without"):
        WorldScenario.model_validate(world)
    mapa = {"kind": "mapa", "epsilon": 1.0, "step_size": 0.1, "batch": 11}
    refused = {
        "does not report; take sgd": {"algorithm": mapa},
        "engine.mode must be auto": {"engine": {"mode": "waves"}},
    }
    for message, changes in refused.items():
        tree = {k: v for k, v in TREE.items() if k not in changes} | changes
        tree["protocol"] = {"kind": "asynchronous"}
        with pytest.raises(ScenarioError, match=message):
            check(Run(0, "base", {}, 0, 1, scenario(tree)))


STEPS: dict[str, Any] = merge(
    TREE,
    {
        "algorithm": {"local_steps": 6, "step_size": 0.05},
        "clients": {
            "compute_per": "step",
            "selection": None,
            "local_steps_by": {"kind": "adacomm", "interval": 60},
        },
        "stop": {"commits": 40},
        "evaluate": {"every": {"commits": 5}, "metrics": ["objective"]},
    },
)


def test_local_steps_are_replayed_as_they_were_given(tmp_path: Path) -> None:
    asking = studies.simulate(validated(STEPS), tmp_path / "asking")
    replay = {"timeline": {"replay": str(tmp_path / "asking")}}
    other = {"kind": "fed_avg", "local_steps": 8, "step_size": 0.05, "batch": 11}
    again, averaged = (
        studies.simulate(validated(merge(STEPS, replay) | changes), tmp_path / name)
        for name, changes in (("again", {}), ("averaged", {"algorithm": other}))
    )
    for study in (again, averaged):
        pd.testing.assert_frame_equal(asking.table("jobs"), study.table("jobs"))
        assert "feedback" not in study.manifest["runs"][0]
    pd.testing.assert_frame_equal(asking.table("commits"), again.table("commits"))
    steps = asking.table("jobs")["local_steps"].to_numpy()
    assert {6, 1} <= {*steps}
    assert asking.table("evaluations")["epochs"].isna().all()
    fewer = merge(STEPS, replay | {"algorithm": {"local_steps": 5}})
    with pytest.raises(ScenarioError, match="more than the algorithm's 5 local steps"):
        studies.simulate(validated(fewer), tmp_path / "fewer")


def test_a_schedule_of_local_steps_needs_no_numerics(tmp_path: Path) -> None:
    by = {"kind": "schedule", "values": [3, 9], "seconds": [20, 40]}
    compute = {"law": "constant", "value": 1}
    clients = {"number": 2, "compute": compute, "compute_per": "step"}
    tree = {"name": "t", "protocol": {"kind": "asynchronous"}, "stop": {"time": 60}}
    tree |= {"clients": clients | {"local_steps_by": by}, "job": {"steps": 5}}
    study = record(WorldScenario.model_validate(tree), tmp_path / "t")
    jobs = study.table("jobs")
    steps, read = jobs["local_steps"].to_numpy(), jobs["read_time"].to_numpy()
    # A job of 5 steps at most has those that hold when it reads.
    np.testing.assert_array_equal(steps, np.where((read >= 20) & (read < 40), 3, 5))
    took = (jobs["computed_time"] - jobs["begun_time"]).to_numpy()
    ended = np.isfinite(took)
    np.testing.assert_array_equal(took[ended], steps[ended])


def test_runs_that_replay_other_runs_of_a_folder_are_batched(tmp_path: Path) -> None:
    """They were taken for runs of one timeline, for nothing but their names differs."""
    by = {"kind": "schedule", "values": [1], "seconds": [3]}
    clients = {"compute": {"law": "expon"}, "compute_per": "step"}
    common = {"name": "t", "protocol": {"kind": "asynchronous"}, "stop": {"time": 9}}
    variants = {"all": {}, "fewer": {"clients": {"local_steps_by": by}}}
    world = common | {"job": {"steps": 3}, "variants": variants}
    number = SGD["problem"]["partition"]["clients"]
    world["clients"] = clients | {"number": number}
    record(WorldScenario.model_validate(world), tmp_path / "world")
    found = []
    for mode in ("compiled", "batched"):
        tree = {
            **merge(SGD, {"algorithm": {"local_steps": 3}, "engine": {"mode": mode}}),
            **common,
            "timeline": {"replay": str(tmp_path / "world")},
            "evaluate": {"every": {"time": 3}, "metrics": ["objective"]},
            "variants": {"all": {}, "fewer": {}},
        }
        study = studies.simulate(validated(tree), tmp_path / mode)
        assert {run["mode"] for run in study.manifest["runs"]} == {mode}
        found.append(study.table("evaluations")["objective"].to_numpy())
    one, other = np.split(found[0], 2)
    assert not np.array_equal(one, other)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)


def test_a_schedule_between_two_ticks_begins_with_the_second(tmp_path: Path) -> None:
    by = {"kind": "schedule", "values": [2], "seconds": [2.5]}
    clients = {"number": 1, "compute": {"law": "constant", "value": 1}}
    tree = {"name": "t", "protocol": {"kind": "asynchronous"}, "stop": {"time": 5}}
    tree |= {"clients": clients | {"local_steps_by": by}, "job": {"steps": 5}}
    jobs = record(WorldScenario.model_validate(tree), tmp_path / "t").table("jobs")
    given = dict(zip(jobs["read_time"], jobs["local_steps"], strict=True))
    assert given == {0: 5, 1: 5, 2: 5, 3: 2, 4: 2, 5: 2}


@pytest.mark.parametrize("arrivals", [None, {"gap": {"law": "constant", "value": 3}}])
def test_an_interval_keeps_no_run_going(arrivals: Any, tmp_path: Path) -> None:
    selection = {"in_flight": 2, "arrivals": arrivals} if arrivals else None
    clients = {"leave": 100, "selection": selection}
    changes = {"clients": clients, "protocol": {"kind": "asynchronous"}}
    tree = merge(STEPS, changes | {"stop": {"commits": 9999}})
    study = studies.simulate(validated(tree), tmp_path / "left")
    assert study.manifest["runs"][0]["stop"] == "stalled"
    assert "0 of 5 clients are left" in study.manifest["runs"][0]["stop_reason"]
    assert study.table("commits")["time"].max() <= 100


ADAPTIVE = {
    "evaluate.metrics must have objective": {"evaluate": {"metrics": ["test_loss"]}},
    "sampling: shuffled, which would pass over": {
        "algorithm": {"sampling": "shuffled"}
    },
    "must be without the algorithm 'sgd' as it is": {"algorithm": {"speeds": "m"}},
    "epochs in stop and evaluate.every": {"stop": {"epochs": 3}},
}


@pytest.mark.parametrize("message", ADAPTIVE)
def test_local_steps_that_cannot_change_are_refused(message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        check(Run(0, "base", {}, 0, 1, scenario(merge(STEPS, ADAPTIVE[message]))))


def test_runs_that_give_local_steps_share_no_timeline() -> None:
    by = {"kind": "schedule", "values": [2], "seconds": [9]}
    tree = merge(STEPS, {"clients": {"local_steps_by": None}})
    tree["sweep"] = {"algorithm.step_size": [0.1, 0.2]}
    given = merge(tree, {"clients": {"local_steps_by": by}})
    found = [
        {
            (task.mode, len(task.runs))
            for task in plan(expand(scenario(t)), backend="cpu")
        }
        for t in (tree, given)
    ]
    assert found == [{("shared", 2)}, {("compiled", 1)}]
