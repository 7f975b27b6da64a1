"""Logs of samples: what is refused, what they say, and their replay."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from stalesim.simulator.cli.commands import app
from stalesim.simulator.extras import rl
from stalesim.simulator.extras.rl.logs import import_samples
from stalesim.simulator.extras.rl.logs.reading import read_samples
from stalesim.simulator.extras.rl.recording import record_rollouts
from stalesim.simulator.extras.rl.scenario import RolloutScenario
from stalesim.simulator.files.study import Study
from stalesim.simulator.parts.errors import DataError
from stalesim.simulator.scenario.reading import read_any
from tests.extras.rl.random_rollouts import random_world

WORLDS = {
    "free": (
        """\
name: free
generation:
  {slots: 8, tokens: {law: lognorm, s: 0.8, scale: 100}, seconds_per_token: 0.02,
  group: 4}
queue: {capacity: 1}
trainer: {samples: 8, step: {law: gamma, a: 5, scale: 0.4}}
stop: {steps: 40}
""",
        ("queue.capacity=1",),
    ),
    "paced": (
        """\
name: paced
generation:
  {slots: 8, tokens: {law: expon, scale: 100}, seconds_per_token: 0.01+0.001*m,
  group: 2, max_async_level: 1}
queue: {order: in_order}
trainer: {samples: 4, step: {law: constant, value: 1.5}, seconds_per_token: 0.001}
stop: {steps: 60}
""",
        ("generation.max_async_level=1",),
    ),
    "serial": (
        """\
name: serial
generation:
  {slots: 3, tokens: {law: constant, value: 48}, seconds_per_token: 0.0625,
  complete: false}
queue: {max_age: 1, order: freshest}
trainer: {samples: 2, step: {law: constant, value: 3.5}}
stop: {steps: 30}
""",
        ("queue={max_age: 1, order: freshest}",),
    ),
}
GOOD: dict[str, list[Any]] = {
    "sample": ["a", "b", "c", "d", "e"],
    "prompt": [1, 1, 2, 2, 3],
    "start_time": [0, 0, 4, 5, 9],
    "finish_time": [4, 5, 8, 9, None],
    "tokens": [40, 50, 40, 40, None],
    "start_version": [0, 0, 0, 0, 1],
    "step": [1, 1, 2, 2, None],
    "step_start_time": [5, 5, 9, 9, None],
    "step_end_time": [8, 8, 12, 12, None],
    "outcome": ["trained"] * 4 + ["under_way"],
}


def written(folder: Path, frame: pd.DataFrame, suffix: str = ".csv") -> Path:
    path = folder / f"log{suffix}"
    if suffix == ".csv":
        frame.to_csv(path, index=False)
    elif suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_parquet(path, index=False)
    return path


def logged(folder: Path, name: str) -> tuple[Study, pd.DataFrame]:
    file = folder / "world.yaml"
    file.write_text(WORLDS[name][0], encoding="utf-8")
    study = record_rollouts(read_any(file), folder / "played")
    return study, rl.log_of(folder / "played")


@pytest.mark.parametrize("name", WORLDS)
def test_a_log_says_what_was_played_and_its_replay_is_as_stale(
    name: str, tmp_path: Path
) -> None:
    played, log = logged(tmp_path, name)
    path = written(tmp_path, log, ".parquet")
    study = import_samples(path, tmp_path / "there", WORLDS[name][1])
    told = study.manifest
    assert [run["variant"] for run in told["runs"]] == ["log", "fitted", "replay"]
    before = played.table("samples")
    before = before[before["outcome"] == "TRAINED"]
    after = study.table("samples")
    for run, label in ((0, "log"), (2, "replay")):
        mine = after[(after["run"] == run) & (after["outcome"] == "TRAINED")]
        for column in ("start_version", "ready_version", "step"):
            same = mine[column].to_numpy() == before[column].to_numpy()
            assert same.all(), (label, column)
    measures = played.manifest["runs"][0]["measures"]
    for key in ("staleness_mean", "in_queue", "staleness_q90", "samples_dropped"):
        for run in (0, 2):
            assert told["runs"][run]["measures"][key] == measures[key], key
    for key in ("seconds_per_step", "slots_idle", "trainer_idle", "tokens_wasted"):
        assert told["runs"][0]["measures"][key] == pytest.approx(
            measures[key], rel=1e-5, abs=1e-6
        )
    ages = study.table("sample_ages").query("run == 0")
    if name == "free":  # at one speed tokens are as old as they were
        there = played.table("sample_ages")
        np.testing.assert_allclose(ages["tokens"], there["tokens"], rtol=1e-4, atol=0.1)
    batch = read_any(tmp_path / "world.yaml").trainer.samples
    assert ages["samples"].sum() == measures["steps"] * 0.8 * batch


@pytest.mark.parametrize("seed", [0, 3, 8, 15])  # instant steps, no tokens, aborts
def test_random_worlds_leave_logs_that_are_read(seed: int, tmp_path: Path) -> None:
    world = random_world(seed)
    tree = world.model_dump(mode="json")
    scenario = RolloutScenario.model_validate(tree | {"name": "random"})
    played = record_rollouts(scenario, tmp_path / "played")
    path = written(tmp_path, rl.log_of(tmp_path / "played"), ".parquet")
    known = [f"{name}={json.dumps(tree[name])}" for name in ("queue", "weights")]
    if (level := world.generation.max_async_level) is not None:
        known.append(f"generation.max_async_level={level}")
    told = import_samples(path, tmp_path / "there", known).manifest
    runs = [run["measures"] for run in (*played.manifest["runs"], *told["runs"])]
    for key in ("staleness_mean", "samples_dropped", "samples_aborted"):
        assert runs[1][key] == pytest.approx(runs[0][key])
    if world.trainer.samples is not None and world.weights.mode != "abort":
        assert runs[3]["staleness_mean"] == runs[0]["staleness_mean"]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_what_a_small_log_says(suffix: str, tmp_path: Path) -> None:
    log = read_samples(written(tmp_path, pd.DataFrame(GOOD), suffix))
    assert log.start_version.tolist() == [0, 0, 0, 0, 1]
    assert log.step.tolist() == [1, 1, 2, 2, 0]
    assert log.group.tolist() == [0, 0, 1, 1, 2]
    study = import_samples(tmp_path / f"log{suffix}", tmp_path / "there")
    measures = study.manifest["runs"][0]["measures"]
    assert measures["staleness_mean"] == 0.5  # two of step 2 began before step 1 ended
    assert measures["in_queue"] == 0.0  # both were ready after it had ended
    assert measures["seconds_per_step"] == 4.0
    assert measures["trainer_idle"] == 1 - (3 + 3) / 12
    # Slots' seconds: 4 + 5 + 4 + 4, and the last one until the log ends.
    assert measures["slots_idle"] == pytest.approx(1 - (17 + 3) / (2 * 12))
    # Of d's 40 tokens a quarter is made after step 1 has ended, at 8 s.
    ages = study.table("sample_ages").query("run == 0")
    assert ages["tokens"].tolist() == [40 + 50 + 10, 40 + 30]


def test_lines_that_are_no_json(tmp_path: Path) -> None:
    path = written(tmp_path, pd.DataFrame(GOOD), ".jsonl")
    path.write_text(path.read_text() + "[1]\n{", encoding="utf-8")
    with pytest.raises(DataError, match="line 6 is no JSON object"):
        read_samples(path)
    path.write_text('{"sample": 1', encoding="utf-8")
    with pytest.raises(DataError, match=r"line 1 is not JSON \(Expecting"):
        read_samples(path)


def test_the_command_says_what_was_fitted_refused_and_not_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.DataFrame(GOOD)
    frame.loc[5] = ["f", 3, 9, 12, 30, 1, None, None, None, "dropped"]
    path = written(tmp_path, frame)
    command = ["rl", "import", str(path), "--no-plots", "--out"]
    app([*command, str(tmp_path / "there")], standalone_mode=False)
    said = capsys.readouterr().out
    told = " ".join(said.split())
    assert "generation.tokens: none is refused; 20 values at least are needed" in told
    assert "Note: 1 samples were dropped; say how: --set queue.max_age=" in told
    assert "replay" in said
    app(
        [*command, str(tmp_path / "again"), "--set", "queue.max_age=2"],
        standalone_mode=False,
    )
    assert "were dropped" not in capsys.readouterr().out


def test_steps_begin_where_the_log_does_not_say(tmp_path: Path) -> None:
    known = read_samples(written(tmp_path, pd.DataFrame(GOOD)))
    without = pd.DataFrame(GOOD).drop(columns="step_start_time")
    path = written(tmp_path, without)
    np.testing.assert_array_equal(read_samples(path).step_start, known.step_start)
    remarks = import_samples(path, tmp_path / "there").manifest["remarks"]
    assert any("no step_start_time" in remark for remark in remarks)


def test_versions_may_count_steps_of_the_optimiser_and_begin_anywhere(
    tmp_path: Path,
) -> None:
    frame = pd.DataFrame(GOOD)
    frame["train_version"] = [100, 100, 104, 104, None]
    frame["start_version"] = [92, 96, 100, 100, 104]
    frame["step"] += 25
    log = read_samples(written(tmp_path, frame))
    assert log.optimizer_steps == 4
    assert log.start_version.tolist() == [-2, -1, 0, 0, 1]
    assert log.step.tolist() == [1, 1, 2, 2, 0]
    told = import_samples(tmp_path / "log.csv", tmp_path / "there").manifest
    assert told["scenario"]["trainer"]["optimizer_steps"] == 4
    assert told["runs"][0]["measures"]["staleness_mean"] == (2 + 1 + 1 + 1) / 4


def test_machines_load_weights_by_themselves(tmp_path: Path) -> None:
    frame = pd.DataFrame(GOOD)
    frame["start_time"] = [0, 0, 8.25, 8.5, 9]
    frame["finish_time"] = [4, 5, 9, 9, None]
    frame["start_version"] = [0, 0, 1, 0, 1]
    with pytest.raises(DataError, match="or name machines"):
        read_samples(written(tmp_path, frame))
    frame["machine"] = ["x", "y", "x", "y", "x"]
    assert read_samples(written(tmp_path, frame)).machine.tolist() == [0, 1, 0, 1, 0]


def column(name: str, place: int, value: Any) -> dict[str, list[Any]]:
    values = list(GOOD[name])
    values[place] = value
    return {name: values}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": None}, "must have the column tokens, but has sample"),
        ({"tokns": [1] * 5}, "'tokns' must be renamed .* did you mean 'tokens'"),
        (column("sample", 1, None), "line 3: must name a sample"),
        (column("sample", 1, "a"), "line 3: must have a sample once, got 'a'"),
        (column("prompt", 1, None), "line 3: must name a prompt"),
        (column("finish_time", 2, 3), "line 4: .* finish_time at or after start_time"),
        (column("finish_time", 2, 4), "line 4: .* no seconds are known"),
        (column("finish_time", 2, None), "line 4: must have finish_time, got an empty"),
        (column("start_time", 0, "noon"), r"line 2: .* \(seconds\) as start_time"),
        (column("start_time", 0, np.inf), "line 2: must have a finite number"),
        (column("step_end_time", 3, 1.7e12), "line 5: .* divide all times by 1000"),
        (column("tokens", 1, 0), "line 3: must have tokens above 0, got 0"),
        (column("tokens", 1, -5), "line 3: must have a number >= 0 as tokens"),
        (column("tokens", 1, None), "line 3: must have tokens, got an empty"),
        (column("start_version", 1, 0.5), "line 3: must have a whole number >= 0"),
        (column("start_version", 1, None), "line 3: must have start_version"),
        (column("start_version", 2, 2), "line 4: .* version that its step began with"),
        (column("start_version", 2, 1), "line 4: .* whose step had ended by"),
        (column("start_version", 4, 0), None),
        (
            column("step", 1, None),
            "line 3: must have step, got an empty cell; fill it in",
        ),
        (column("step", 4, 2), "line 6: must have no step, because it is not trained"),
        ({"step": [1, 1, 3, 3, None]}, "every step from 1 to 3, got none of step 2"),
        (column("step_end_time", 1, 7), "line 3: must have the step_end_time of the"),
        (column("outcome", 1, "lost"), "line 3: must have as outcome one of trained"),
        (
            {"step_start_time": [4.5, 4.5, 9, 9, None]},
            r"step 1 must start at or after the finish of its samples, 5\.0 s",
        ),
        (
            {"step_end_time": [9.5, 9.5, 12, 12, None]},
            r"step 2 must start at or after the end of the step before, 9\.5 s",
        ),
        (
            {"step_end_time": [8, 8, 8.5, 8.5, None]},
            r"step 2 must end at or after its start or last sample, 9\.0 s, got 8\.5",
        ),
        (
            {"train_version": [4, 4, 3, 3, None]},
            "train_version must rise from step to step by one number, got 4 at step 1",
        ),
        (
            {"start_version": [0, 0, 0, 0, 1], "start_time": [0, 0, 4, 9.5, 9]}
            | column("finish_time", 3, 10)
            | {"step_start_time": [5, 5, 10, 10, None]},
            "line 5: must have no start_version below that of an earlier start, got 0",
        ),
    ],
)
def test_damages_are_told_in_one_line(
    change: dict[str, Any], message: str | None, tmp_path: Path
) -> None:
    entries = {k: v for k, v in (GOOD | change).items() if v is not None}
    path = written(tmp_path, pd.DataFrame(entries))
    if message is None:
        read_samples(path)
        return
    with pytest.raises(DataError, match=message) as caught:
        read_samples(path)
    assert "\n" not in str(caught.value)


def test_without_outcomes_all_must_be_trained(tmp_path: Path) -> None:
    frame = pd.DataFrame(GOOD).drop(columns="outcome")
    with pytest.raises(DataError, match=r"line 6: .* or say by a column outcome"):
        read_samples(written(tmp_path, frame))
    read_samples(written(tmp_path, frame[:4]))
    none = pd.DataFrame(GOOD)[4:]
    with pytest.raises(DataError, match="must have a trained sample, got none"):
        read_samples(written(tmp_path, none))
