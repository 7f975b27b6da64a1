"""Rows as runs compile them are what they are without optimisation."""

from typing import Any

import jax
import numpy as np
import pytest

from stalesim.simulator.engine.execute import Program, _run, null_events, put
from stalesim.simulator.engine.simulation import Prepared, _row_stream, key_of, prepare
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run
from tests.quick import lowest

COMMITS = 6
HORIZONTAL = {"kind": "synthetic_logistic", "num_features": 4, "num_samples": 100}
VERTICAL = HORIZONTAL | {"num_features": 20}
"""Batches of four and widths of five: what jaxlib 0.8 to 0.10 compile wrongly."""
IMAGES = {"kind": "digits", "limit": 60}
SPEECH = {"kind": "synthetic_series", "labels": "frame", "frames": 21, "limit": 40}
LINEAR = {"kind": "linear"}
DENSE = {"kind": "dense", "hidden": [5, 5], "activation": "tanh"}
MLP = {"kind": "mlp", "hidden": 5}
LSTM = {"kind": "lstm", "layers": 2, "cells": 5, "projection": 5}
TEXT = {"kind": "text", "block": 4, "limit": 60, "test_fraction": 0.001}
LANGUAGE = {"kind": "transformer", "layers": 1, "heads": 1, "width": 5}
CNN = {"kind": "cnn", "channels": [5, 5], "kernel": 1}


def horizontal(
    data: dict[str, Any],
    model: dict[str, Any],
    protocol: str = "asynchronous",
    **of: Any,
) -> dict[str, Any]:
    return {
        "problem": {
            "data": data,
            "partition": {"kind": "iid", "clients": 4},
            "model": model,
            "l2": 0.01,
        },
        "protocol": {"kind": protocol},
        "algorithm": {"kind": "sgd", "step_size": 0.1, "batch": 4, **of},
    }


def vertical(
    model: dict[str, Any], protocol: str = "asynchronous", **of: Any
) -> dict[str, Any]:
    return {
        "problem": {
            "data": VERTICAL,
            "partition": {"kind": "vertical", "parties": 4},
            "model": model,
            "l2": 0.01,
        },
        "protocol": {"kind": protocol},
        "algorithm": {"kind": "vafl", "step_size": 0.1, "batch": 4, **of},
    }


TRANSFER = vertical(MLP, "rounds", kind="fed_bcd", local_steps=5)
TRANSFER["problem"] |= {
    "partition": {"kind": "vertical", "parties": 2},
    "transfer": {"overlap": 0.5, "alpha": 1.0},
}
PRIVATE = {"kind": "audp", "epsilon": 1.0, "clip": "sample", "clip_bound": 1.0}
RUNS: dict[str, dict[str, Any]] = {
    "lstm": horizontal(SPEECH, LSTM),
    "transformer": horizontal(TEXT, LANGUAGE),
    "vafl": vertical(MLP, upload="batch"),
    "vafl, all": vertical(MLP, upload="all"),
    "vafl, at once": vertical(LINEAR, "synchronous", upload="batch"),
    "fed_bcd": vertical(MLP, "rounds", kind="fed_bcd", local_steps=5),
    "transfer": TRANSFER,
    "linear": horizontal(HORIZONTAL, LINEAR),
    "local steps": horizontal(HORIZONTAL, DENSE, kind="fed_async", local_steps=3),
    "clipped": horizontal(HORIZONTAL, DENSE, **PRIVATE),
    "gossip": horizontal(HORIZONTAL, DENSE, "gossip", kind="psgd"),
    "cnn": horizontal(IMAGES, CNN),
}
QUICK = ("lstm", "vafl")


def built(tree: dict[str, Any]) -> Prepared:
    tree = {
        "name": "compiled",
        "clients": {"compute": {"law": "constant", "value": "m"}},
        "stop": {"commits": COMMITS},
        "evaluate": {"every": {"commits": COMMITS}, "metrics": ["test_loss"]},
        "engine": {"precision": "float64"},
        **tree,
    }
    return prepare(Run(0, "", {}, 0, 1, Scenario.model_validate(tree)))


def moved(plan: Prepared, *, optimised: bool) -> np.ndarray:
    """Returns by how much some rows move all numbers of a run."""
    program = Program(plan.kernel, plan.problem)
    carry = program.start(key_of(1), plan.timeline.num_registers)
    before = numbers(carry)
    feed = _row_stream(plan, COMMITS)
    feed.next(1)  # the evaluation before the first row
    piece = feed.next(COMMITS)
    length = piece.rows.time.size
    assert length > 1
    events = null_events(length, plan.timeline.width, plan.samples)
    put(events, 0, piece)
    infos = program.infos(carry, events)
    bounds = np.int32(0), np.int32(length)
    arguments = plan.kernel, plan.problem, carry, events, *bounds, infos
    lowered = _run.lower(*arguments, batched=False, shared=True)
    after, _ = (lowered.compile() if optimised else lowest(lowered))(*arguments)
    return numbers(after) - before


def numbers(carry: Any) -> np.ndarray:
    leaves = [leaf for leaf in jax.tree.leaves(carry) if leaf.dtype == np.float64]
    return np.concatenate([np.asarray(leaf).ravel() for leaf in leaves])


@pytest.mark.parametrize(
    "name",
    [n if n in QUICK else pytest.param(n, marks=pytest.mark.long) for n in RUNS],
)
def test_optimisation_changes_nothing(name: str) -> None:
    # Roundings of 1e-16 grow little in a few steps; a wrong number is off by its size.
    plan = built(RUNS[name])
    with jax.enable_x64(True):
        found, expected = (moved(plan, optimised=fast) for fast in (True, False))
    scale = np.abs(expected).max()
    assert scale > 1e-4
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * scale)
