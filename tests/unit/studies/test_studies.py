"""Studies: continued, extended, spread, shared, failed; the same whatever happens."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim import simulator
from stalesim.analysis import legend
from stalesim.simulator import studies
from stalesim.simulator.engine import simulation
from stalesim.simulator.engine.of_run import sampler
from stalesim.simulator.files.study import load, write_manifest
from stalesim.simulator.files.study.disk import locked
from stalesim.simulator.parts.errors import ScenarioError, StudyError
from stalesim.simulator.problem.sampler import alike
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.studies import executors, planning, running, sizes
from stalesim.simulator.studies.planning import Task
from tests.unit.studies.small import SMALL

TREE: dict[str, Any] = SMALL | {
    "replicates": 2,
    "sweep": {"algorithm.step_size": [0.1, 0.2]},
}
TABLES = ("commits", "evaluations", "jobs", "clients", "staleness")


def tables(study: Any) -> dict[str, pd.DataFrame]:
    """Returns all tables with runs named by label and replicate, not by number."""
    runs = study.manifest["runs"]
    names = {run["run"]: (run["label"], run["replicate"]) for run in runs}
    found = {}
    for name in TABLES:
        table = study.table(name)
        table["run"] = table["run"].map(names)
        keys = [*table.columns]
        found[name] = table.sort_values(keys, ignore_index=True)
    return found


def assert_same(one: Any, other: Any) -> None:
    first, second = tables(one), tables(other)
    for name in TABLES:
        assert len(first[name]) > 0
        pd.testing.assert_frame_equal(first[name], second[name])


def test_a_study_that_is_complete_runs_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = studies.simulate(TREE, tmp_path / "s")
    monkeypatch.setattr(simulation, "execute", None)
    again = studies.simulate(TREE | {"question": "another?"}, tmp_path / "s")
    assert again.complete
    assert again.manifest["question"] == "another?"
    assert again.manifest["started"] == study.manifest["started"]
    assert len(again.manifest["continued"]) == 1
    assert_same(study, again)


def test_more_replicates_and_points_extend_a_study(tmp_path: Path) -> None:
    small = studies.simulate(TREE, tmp_path / "s")
    larger = TREE | {
        "replicates": 3,
        "sweep": {"algorithm.step_size": [0.1, 0.15, 0.2]},
    }
    extended = studies.simulate(larger, tmp_path / "s")
    fresh = studies.simulate(larger, tmp_path / "fresh")
    assert_same(extended, fresh)
    groups = [run["label"] for run in extended.manifest["runs"]]
    assert groups == [run["label"] for run in fresh.manifest["runs"]]
    old = {(r["label"], r["replicate"]): r for r in small.manifest["runs"]}
    for run in extended.manifest["runs"]:
        if (known := old.get((run["label"], run["replicate"]))) is not None:
            assert run == known, "a run that was finished is left as it was"


def test_runs_that_had_other_company_are_named(tmp_path: Path) -> None:
    """Runs that share a timeline are executed together; later ones come too late."""
    tree = TREE | {"engine": {"mode": "auto", "chunk": 64}}
    one = tree | {"sweep": {"algorithm.step_size": [0.1]}}
    assert studies.simulate(one, tmp_path / "s").manifest["regrouped"] == []
    more = studies.simulate(one | {"replicates": 3}, tmp_path / "s")
    assert more.manifest["regrouped"] == [], "a replicate has a timeline of its own"
    fresh = studies.simulate(one | {"replicates": 3}, tmp_path / "fresh")
    assert_same(more, fresh)
    wider = studies.simulate(tree | {"replicates": 3}, tmp_path / "s")
    assert wider.manifest["regrouped"] == [0, 1, 2, 3, 4, 5]
    again = studies.resume(tmp_path / "s")
    assert again.manifest["regrouped"] == [0, 1, 2, 3, 4, 5]
    at_once = studies.simulate(tree | {"replicates": 3}, tmp_path / "at_once")
    assert at_once.manifest["regrouped"] == []
    assert any("runs 0 to 5 of the" in note for note in legend.details(wider))
    assert not any("at once" in note for note in legend.details(at_once))
    found, whole = tables(wider), tables(at_once)
    for name in ("jobs", "clients", "staleness"):
        pd.testing.assert_frame_equal(found[name], whole[name])
    pd.testing.assert_frame_equal(
        found["evaluations"], whole["evaluations"], rtol=1e-5, check_exact=False
    )


def test_a_study_of_other_runs_is_not_touched(tmp_path: Path) -> None:
    study = studies.simulate(TREE, tmp_path / "s")
    for change in (
        {"algorithm": TREE["algorithm"] | {"batch": 9}},
        {"sweep": {}},
        {"replicates": 1},
        {"seed": 2},
    ):
        with pytest.raises(StudyError, match=r"this very study, but .* of its run"):
            studies.simulate(TREE | change, tmp_path / "s")
    assert_same(study, load(tmp_path / "s"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(StudyError, match="holds other files"):
        studies.simulate(TREE, tmp_path / "full")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]
    with pytest.raises(StudyError, match="File name too long"):
        studies.simulate(TREE, tmp_path / ("x" * 256))


def interrupted(path: Path, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Begins a study and stops it with `after` tasks finished, the next one begun."""
    execute, calls = simulation.execute, []

    def stopping(runs: Any, mode: str, writer: Any, *rest: Any, **options: Any) -> Any:
        calls.append(runs)
        ends = execute(runs, mode, writer, *rest, **options)
        if len(calls) > after:
            writer.flush()
            raise KeyboardInterrupt
        return ends

    with monkeypatch.context() as context:
        context.setattr(simulation, "execute", stopping)
        with pytest.raises(KeyboardInterrupt):
            studies.simulate(TREE, path)


@pytest.mark.parametrize("mode", ["compiled", "auto", "stepwise"])
def test_an_interrupted_study_is_continued_to_the_same_tables(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TREE, "engine", {"mode": mode, "chunk": 64})
    interrupted(tmp_path / "s", monkeypatch, after=1)
    assert load(tmp_path / "s").manifest["interrupted"]
    assert not load(tmp_path / "s").complete
    resumed = studies.resume(tmp_path / "s")
    assert resumed.complete
    assert not resumed.manifest["interrupted"]
    fresh = studies.simulate(TREE, tmp_path / "fresh")
    assert_same(resumed, fresh)
    modes = [[r["mode"] for r in s.manifest["runs"]] for s in (resumed, fresh)]
    assert modes[0] == modes[1]


def test_another_version_does_not_continue_a_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(tmp_path / "s", monkeypatch, after=1)
    manifest = load(tmp_path / "s").manifest
    manifest["environment"]["jax"] = "0.0.1"
    write_manifest(tmp_path / "s", manifest)
    with pytest.raises(StudyError, match=r"continued with jax 0\.0\.1"):
        studies.resume(tmp_path / "s")


def test_one_process_writes_a_folder_at_a_time(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "s"),
        pytest.raises(StudyError, match="another one is at it"),
    ):
        studies.simulate(TREE, tmp_path / "s")
    assert studies.simulate(TREE, tmp_path / "s").complete


@pytest.mark.parametrize("where", ["file", "file/below", "missing/../file"])
def test_a_folder_that_cannot_be_made_is_one_line(where: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StudyError, match="must be a folder that can be written") as no:
        studies.simulate(TREE, tmp_path / where)
    assert "\n" not in str(no.value)
    assert (tmp_path / "file").read_text() == "mine"


def test_nothing_is_left_of_a_study_that_could_not_begin(tmp_path: Path) -> None:
    many = TREE["problem"] | {"partition": {"kind": "iid", "clients": 10**5}}
    with pytest.raises(ScenarioError, match=r"at most the .* training rows"):
        studies.simulate(TREE | {"problem": many}, tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_arrays_that_are_given_stay_with_their_study(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    x = generator.normal(size=(200, 5))
    data = {"x": x, "y": (x[:, 0] > 0).astype(int)}
    study = studies.simulate(TREE, tmp_path / "s", data=data)
    assert {run["scaling"] for run in study.manifest["runs"]} == {"raw: as stored"}
    assert_same(study, studies.simulate(TREE, tmp_path / "s", data=data))
    assert_same(study, studies.resume(tmp_path / "s"))
    with pytest.raises(StudyError, match="must hold the arrays that are given"):
        studies.simulate(TREE, tmp_path / "s", data=data | {"x": x + 1})
    (tmp_path / "s" / planning.DATA).write_bytes(b"PK")
    with pytest.raises(StudyError, match="it is damaged"):
        studies.simulate(TREE, tmp_path / "s", data=data)


def fail(reason: Exception, monkeypatch: pytest.MonkeyPatch, *labels: str) -> None:
    execute = simulation.execute

    def failing(runs: Any, mode: str, writer: Any, *rest: Any, **options: Any) -> Any:
        ends = execute(runs, mode, writer, *rest, **options)
        writer.flush()
        if any(prepared.run.label in labels for prepared in runs):
            raise reason
        return ends

    monkeypatch.setattr(simulation, "execute", failing)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (ScenarioError("clients must take time"), "clients must take time"),
        (ValueError("two\nlines"), "ValueError: two"),
    ],
)
def test_a_failed_run_leaves_the_others_alone_and_is_tried_again(
    reason: Exception, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s"
    with monkeypatch.context() as context:
        fail(reason, context, "base, learning_rate=0.1")
        study = studies.simulate(TREE, path)
    ends = {(r["label"][-3:], r["stop"]) for r in study.manifest["runs"]}
    assert ends == {("0.1", "failed"), ("0.2", "commits")}
    reasons = {
        r["stop_reason"] for r in study.manifest["runs"] if r["stop"] == "failed"
    }
    assert all(r.startswith(told) and "\n" not in r for r in reasons)
    assert set(study.table("evaluations")["run"]) == {2, 3}
    if not isinstance(reason, ScenarioError):
        trace = (path / executors.FAILURES / "00000.txt").read_text()
        assert "Traceback" in trace
    assert_same(studies.resume(path), studies.simulate(TREE, tmp_path / "fresh"))


def test_a_study_of_which_every_run_fails_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(ScenarioError("no time"), monkeypatch, "base, learning_rate=0.1", "base")
    with pytest.raises(StudyError, match=r"every run failed; the first .*: no time"):
        studies.simulate(TREE | {"sweep": {}}, tmp_path / "s")


def test_replicates_of_epochs_have_one_program_whatever_their_clients_have() -> None:
    """The quickstart compiled a program for each of 18 pairs of method and length."""
    runs = expand(running.read("scenarios/quickstart.yaml"))
    alone = {(run.variant, sampler(run).width) for run in runs}
    tasks = planning.roomy(planning.plan(runs, backend="cpu"))
    wide = {
        (task.runs[0].variant, alike([sampler(run)], task.batches)[0].width)
        for task in tasks
        for run in task.runs
    }
    assert len(alone) > len(wide) == 3
    assert {width for _, width in wide} == {max(width for _, width in alone)}


def test_room_that_is_left_changes_no_digit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    algorithm = {"kind": "fed_async", "step_size": 0.1, "batch": 64}
    algorithm["local_epochs"] = 1
    tree = {**TREE, "algorithm": algorithm, "replicates": 1, "sweep": {}}
    tree["problem"] = {**TREE["problem"]}
    tree["problem"]["partition"] = {"kind": "dirichlet", "clients": 5, "alpha": 1}
    close = studies.simulate(tree, tmp_path / "close")

    def roomy(tasks: list[Task]) -> list[Task]:
        return [
            task._replace(batches=2 * sampler(task.runs[0]).steps) for task in tasks
        ]

    monkeypatch.setattr(planning, "roomy", roomy)
    assert_same(close, studies.simulate(tree, tmp_path / "wide"))


def test_python_takes_a_file_a_mapping_or_a_scenario(tmp_path: Path) -> None:
    import yaml

    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(TREE))
    one, other = simulator.simulate(path), simulator.simulate(simulator.read(path))
    assert_same(one, other)
    over = {"sweep.clients.compute": [{"law": "expon"}, {"law": "gamma", "a": 2}]}
    swept = simulator.simulate(TREE, tmp_path / "s", replace=over, replicates=1)
    parameters = [run["parameters"] for run in swept.manifest["runs"]]
    assert len(parameters) == 4
    assert parameters[1] == {
        "algorithm.step_size": 0.1,
        "clients.compute": "gamma",
    }
    with pytest.raises(simulator.UserError, match="did you mean 'seed'"):
        simulator.simulate(path, replace={"sede": 1})
    with pytest.raises(simulator.UserError, match="but seed is"):
        simulator.simulate(TREE, replace={"seed.x": 1})


def test_memory_is_counted_from_the_programs_shapes() -> None:
    tree = TREE | {"sweep": {}, "replicates": 1}
    _, tasks = studies.planned(running.validated(tree))
    processes, data, state = sizes.memory(tasks, jobs=3)
    weights = 10 * 65 * 4
    registers = 6 + 1  # one for each of five clients, the current one, and the model
    buffer = 64 * 8 * 4
    least = 2 * (registers * weights + buffer)
    assert least <= state <= 1.2 * least
    assert processes == 1
    assert sizes.memory([tasks[0]] * 5, jobs=3) == (3, data, state)
