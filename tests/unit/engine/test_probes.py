"""Probes save what a row was made of; a windowed mean ends a run at its row."""

from typing import Any

import numpy as np
import pytest

from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.scenario.study import merge
from tests.runs import execute, prepared
from tests.support import SGD, Memory

ALONE = merge(
    SGD,
    {
        "problem": {"partition": {"kind": "iid", "clients": 1}},
        "stop": {"commits": 40},
        "evaluate": {"every": {"commits": 7}},
    },
)
PROBE = {"probe": {"every": 1, "what": ["message", "gradient", "state"]}}


def probed(memory: Memory, what: str, run: int = 0) -> np.ndarray:
    return memory.column("probes", what, run)


@pytest.mark.parametrize("chunk", [16, 64])
@pytest.mark.parametrize("mode", ["compiled", "stepwise", "batched"])
def test_states_move_by_the_messages(mode: str, chunk: int) -> None:
    runs = [
        prepared(ALONE, PROBE, {"engine": {"chunk": chunk}}, seed=s, number=s)
        for s in range(2 if mode == "batched" else 1)
    ]
    memory, _ = execute(runs, mode)
    for run in range(len(runs)):
        states, messages = probed(memory, "state", run), probed(memory, "message", run)
        assert states.shape == messages.shape == (40, 650)
        assert probed(memory, "commit", run).tolist() == list(range(1, 41))
        moved = states[:-1] - 0.3 * messages[:-1]
        np.testing.assert_allclose(states[1:], moved, atol=1e-7)
        np.testing.assert_array_equal(probed(memory, "gradient", run), messages)
        norm = np.linalg.norm(messages, axis=1)
        np.testing.assert_allclose(
            norm, memory.column("commits", "gradient_norm", run), rtol=1e-5
        )


def test_only_every_so_many_commits_is_probed() -> None:
    memory, _ = execute([prepared(ALONE, {"probe": {"every": 9}})])
    assert probed(memory, "commit").tolist() == [9, 18, 27, 36]
    assert set(memory.tables["probes"][0]) == {
        *("run", "commit", "time", "client", "job", "samples", "message")
    }


def test_a_message_is_clipped_and_noisy() -> None:
    private = {
        "algorithm": {"mechanism": {"clip_bound": 0.5, "multiplier": 0.1}},
        "probe": {"every": 1, "what": ["message", "gradient"]},
    }
    memory, _ = execute([prepared(ALONE, private)])
    noise = probed(memory, "message") - np.array(
        [0.5 * g / np.linalg.norm(g) for g in probed(memory, "gradient")]
    )
    # Gradients of samples are clipped one by one, so this is a rough upper bound.
    assert (np.linalg.norm(noise, axis=1) < 2).all()
    assert (memory.column("commits", "noise_norm") > 0).all()
    assert (memory.column("commits", "clipped_fraction") > 0.5).all()


def windowed(**options: Any) -> dict[str, Any]:
    return {"stop": {"commits": 40, "windowed": options}}


@pytest.mark.parametrize("chunk", [16, 64])
def test_a_windowed_mean_ends_a_run_at_its_row(chunk: int) -> None:
    engine = {"engine": {"chunk": chunk}}
    whole, _ = execute([prepared(ALONE, engine)])
    loss = whole.column("commits", "loss").astype(np.float64)
    means = np.convolve(loss, np.ones(5) / 5, "valid")
    below = float(np.sort(means)[14:16].mean())  # between two means, not on one
    expected = int((means < below).argmax()) + 5
    assert 16 < expected < 40
    memory, (end,) = execute([prepared(ALONE, engine, windowed(below=below))])
    assert end["stop"] == "target"
    assert end["commits"] == end["contributions"] == expected
    assert memory.column("commits", "commit").tolist() == list(range(1, expected + 1))
    assert memory.column("evaluations", "commits").max() <= expected
    assert (memory.column("jobs", "commit") <= expected).sum() == expected


def test_a_window_that_is_never_below_ends_nothing() -> None:
    _, (end,) = execute([prepared(ALONE, windowed(below=0.0, commits=3))])
    assert (end["stop"], end["commits"]) == ("commits", 40)


def test_a_window_of_an_unknown_column() -> None:
    with pytest.raises(ScenarioError, match=r"windowed\.column must be one of grad"):
        execute([prepared(ALONE, windowed(below=0.0, column="los"))])
