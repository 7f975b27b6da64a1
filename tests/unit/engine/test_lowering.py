"""Every algorithm and every model can be lowered for GPUs and TPUs, without either.

Lowering compiles nothing: it fails where an operation has no rule for a platform. What
is left to a library of one platform alone, or to Python on the host, lowers to a call
by name; rows have no such calls.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jax.sharding import Mesh

from stalesim.simulator.engine import execute, waves
from stalesim.simulator.engine.simulation import Prepared, prepare
from stalesim.simulator.parts.base import tag
from stalesim.simulator.parts.catalogue import own
from stalesim.simulator.problem.capabilities import DividesRows
from stalesim.simulator.problem.keys import key_of
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run
from tests.golden.every import CASES
from tests.runs import prepared
from tests.support import SGD, of_extras

PLATFORMS = ("cuda", "tpu")
CALL = re.compile(r"custom_call @(\w+)")
OF_SHARDING = {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"}
"""Names that the compiler itself resolves."""
ROWS = 2 * execute.BLOCK
SMALL: dict[str, Any] = {"stop": {"commits": 8}, "evaluate": {"every": {"commits": 8}}}


def rows(model: dict[str, Any], **data: Any) -> tuple[dict[str, Any], ...]:
    """Returns what a study of clients says of a model."""
    data = data or {"kind": "digits"}
    return SGD, {"problem": {"data": data, "model": model}}


def parties(model: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Returns what a study of parties says of a model."""
    return ({"problem": {"model": model}},)


TEXT = {"kind": "text", "scale": "raw", "block": 8, "limit": 60, "test_fraction": 0.005}
SPEECH = {
    "kind": "synthetic_series",
    "labels": "frame",
    "frames": 21,
    "num_samples": 200,
}
QUADRATIC = {"kind": "quadratic", "clients": 5, "dimension": 3, "condition": 2}
CNN = {"kind": "cnn", "kernel": 2, "channels": (4, 4)}
LINEAR_OF_OURS = {"kind": "python", "build": "tests.own_models:linear"}
MODELS: dict[str, tuple[dict[str, Any], ...]] = {
    "linear": rows({"kind": "linear"}),
    "linear of parties": parties({"kind": "linear"}),
    "mlp": parties({"kind": "mlp", "hidden": 4}),
    "dense": rows({"kind": "dense", "hidden": [6, 5]}),
    "dense of parties": parties({"kind": "dense", "hidden": [4]}),
    "cnn": rows(CNN),
    "deep_cnn": rows({"kind": "deep_cnn", "channels": [4, 4]}),
    "lstm": rows({"kind": "lstm", "layers": 2, "cells": 3, "projection": 3}, **SPEECH),
    "diagonal": (
        *rows({"kind": "diagonal"}, **QUADRATIC),
        {
            "problem": {
                "loss": "squared",
                "partition": {"kind": "natural", "clients": 5},
            },
            "algorithm": {"batch": 1},
            "evaluate": {"metrics": ["test_loss"]},
        },
    ),
    "python": rows(LINEAR_OF_OURS),
    "transformer": rows(
        {"kind": "transformer", "layers": 1, "heads": 2, "width": 8}, **TEXT
    ),
} | of_extras("LOWERED")


def lowered(traced: Any) -> set[str]:
    """Returns the calls by name of a program, lowered for all platforms at once."""
    program = traced.lower(lowering_platforms=PLATFORMS).as_text()
    return {*CALL.findall(program)} - OF_SHARDING


def begun(plan: Prepared) -> tuple[Any, Any, Any]:
    """Returns carry, rows and diagnostics of a run; of the carry only shapes."""
    slots = plan.timeline.num_registers
    start = partial(execute.start, num_registers=slots)
    carry = jax.eval_shape(start, plan.kernel, plan.problem, key_of(1))
    events = execute.null_events(ROWS, plan.timeline.width, plan.samples)
    program = execute.Program(plan.kernel, plan.problem)
    return carry, events, program.infos(carry, events)


def calls_of_rows(plan: Prepared) -> set[str]:
    """Returns the calls by name in rows, as a GPU executes them, and evaluations."""
    carry, events, infos = begun(plan)
    bounds = np.int32(0), np.int32(ROWS)
    program = execute._run.trace(
        plan.kernel, plan.problem, carry, events, *bounds, infos,
        batched=False, shared=True, block=execute.BLOCK,
    )  # fmt: skip
    metrics = plan.run.scenario.evaluate.metrics
    evaluation = execute._evaluate.trace(
        plan.kernel, plan.problem, carry.state, metrics=metrics, batched=False
    )
    return lowered(program) | lowered(evaluation)


def calls_of_waves(plan: Prepared) -> set[str]:
    """Returns the calls by name in waves on one device."""
    carry, events, infos = begun(plan)
    kernel: Any = plan.kernel
    mesh = Mesh(np.array(jax.local_devices()[:1]), (waves.AXIS,))
    loaded = events, np.full(ROWS, ROWS, np.int32)
    bounds = np.int32(0), np.int32(ROWS)
    traced = waves._run.trace(
        kernel, plan.problem, carry, loaded, *bounds, infos, mesh=mesh
    )
    return lowered(traced)


ALGORITHMS: dict[str, str] = {}
for _name, _case in CASES.items():
    ALGORITHMS.setdefault(_case["algorithm"]["kind"], _name)


@pytest.mark.parametrize("kind", [tag(part) for part in own("algorithms")])
def test_rows_of_an_algorithm_lower_for_gpus_and_tpus(kind: str) -> None:
    config = Scenario.model_validate(CASES[ALGORITHMS[kind]])
    plan = prepare(Run(0, "base", {}, 0, 1, config))
    assert calls_of_rows(plan) == set()
    if isinstance(config.algorithm, DividesRows):
        assert calls_of_waves(plan) == set()


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_a_model_lower_for_gpus_and_tpus(name: str) -> None:
    assert calls_of_rows(prepared(*MODELS[name], SMALL)) == set()


def test_every_model_of_the_catalogue_is_lowered() -> None:
    tried = {name.split(" ")[0].rstrip(",") for name in MODELS}
    # A vector gives no outputs here.
    assert tried == {tag(part) for part in own("models")} - {"vector"}


of_cpus = Primitive("of_cpus")
of_cpus.def_abstract_eval(lambda x: x)
mlir.register_lowering(of_cpus, lambda _, x: [x], platform="cpu")


def from_a_library(x: jax.Array) -> jax.Array:
    return jax.ffi.ffi_call("library_of_cpus", jax.typeof(x))(x)


def from_python(x: jax.Array) -> jax.Array:
    return jax.pure_callback(np.sin, jax.typeof(x), x)


class Calling:
    """A model whose outputs go through a function."""

    def __init__(self, model: Any, function: Callable[[jax.Array], jax.Array]) -> None:
        self._model, self._function = model, function

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def apply(self, weights: Any, x: Any) -> Any:
        outputs = self._model.apply(weights, x)
        return outputs + self._function(jax.lax.stop_gradient(outputs))


def calling(function: Callable[[jax.Array], jax.Array]) -> Prepared:
    plan = prepared(*MODELS["dense"], SMALL)
    model: Any = Calling(plan.problem.model, function)
    return replace(plan, problem=replace(plan.problem, model=model))


def test_a_call_of_a_library_of_cpus_is_seen() -> None:
    assert calls_of_rows(calling(jnp.sin)) == set()
    assert calls_of_rows(calling(from_a_library)) == {"library_of_cpus"}


@pytest.mark.parametrize("function", [of_cpus.bind, from_python])
def test_what_is_of_cpus_or_of_python_alone_does_not_lower(function: Any) -> None:
    with pytest.raises(NotImplementedError, match="platform"):
        calls_of_rows(calling(function))
