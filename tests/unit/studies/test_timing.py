"""The time that a study will take, as a dry run says it."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from stalesim.simulator.cli.commands import app
from stalesim.simulator.engine import simulation
from stalesim.simulator.engine.simulation import Prepared
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.studies import planned, timing
from stalesim.simulator.studies.planning import Task
from tests.support import VAFL


def test_a_stretch_is_extended_to_the_whole() -> None:
    # A tenth in 2 s from 5 s on: 9 tenths more take 18 s.
    found = timing._extrapolated(1.0, [(5.0, 0.1), (6.0, 0.12), (7.0, 0.2)])
    assert found == pytest.approx((4.0, 18.0))
    assert timing._extrapolated(1.0, [(5.0, 0.1), (7.0, 0.1)]) is None


def test_tasks_of_a_kind_take_as_long_as_the_one_that_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    variants = {"slow": {"algorithm": {"batch": 30}}, "fast": {}, "third": {}}
    tree = VAFL | {"replicates": 5, "variants": variants}
    _, tasks = planned(Scenario.model_validate(tree))

    def measured(task: Task) -> timing._Speed:
        slow = task.runs[0].scenario.algorithm.batch == 30
        return timing._Speed(3.0, 10.0 if slow else 2.0)

    monkeypatch.setattr(timing, "_measured", measured)
    found = timing.estimate(tasks, 1)
    assert found is not None
    assert (found.kinds, found.measured, found.processes) == (2, 2, 1)
    shared = sum(task.mode == "shared" for task in tasks)
    others = len(tasks) - 5
    assert found.seconds == pytest.approx(3 + 5 * 10 + 3 + others * 2), shared
    spread = timing.estimate(tasks, 100)
    assert spread is not None
    assert spread.seconds >= 13, "no process is faster than the longest task"


def test_a_short_run_is_measured_as_a_whole() -> None:
    _, tasks = planned(Scenario.model_validate(VAFL | {"stop": {"commits": 100}}))
    found = timing.estimate(tasks, 1)
    assert found is not None
    assert 0 < found.seconds < 120


@pytest.mark.parametrize(("row_s", "looks"), [(0.5, [8]), (0.0001, [8, 64])])
def test_slow_rows_are_looked_at_in_smaller_buffers(
    row_s: float, looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By 64 rows at a time a convolutional network was looked at for eight minutes."""
    now, found = [0.0], []

    def executed(
        prepared: list[Prepared], *others: Any, progress: Callable[[float, int], None]
    ) -> None:
        """Counts the evaluations of a buffer, one a row, at its end."""
        del others
        chunk = prepared[0].run.scenario.engine.chunk
        found.append(chunk)
        for buffer in range(100_000 // chunk):
            now[0] += row_s * chunk
            for _ in prepared if buffer == 0 else ():
                progress(0.0, 0)  # the start of each run, which was compiled before
            for row in range(chunk):
                progress((buffer * chunk + row + 1) / 100_000, 0)

    clock = SimpleNamespace(perf_counter=lambda: now[0])
    monkeypatch.setattr(timing, "time", clock)
    monkeypatch.setattr(
        simulation, "execute", lambda *given: executed(*given[:3], progress=given[3])
    )
    _, tasks = planned(Scenario.model_validate(VAFL))
    speed = timing._measured(tasks[0])
    assert speed is not None
    assert found == looks
    assert speed.rest == pytest.approx(row_s * 100_000, rel=0.15)


def test_a_dry_run_executes_nothing_unless_an_estimate_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It executed the beginning of each kind of run: 87 s for convolutions."""
    asked: list[int] = []
    monkeypatch.setattr(timing, "estimate", lambda tasks, jobs: asked.append(jobs))
    command = ["run", "scenarios/vafl/smoke.yaml", "-j", "1"]
    dry = CliRunner().invoke(app, [*command, "--dry-run"])
    assert (dry.exit_code, asked) == (0, [])
    estimated = CliRunner().invoke(app, [*command, "--estimate"])
    assert (estimated.exit_code, asked) == (0, [1])
    assert "nothing was run" in estimated.output
