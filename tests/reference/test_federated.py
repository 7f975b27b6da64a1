"""SGD's variants, FedAsync and FedBuff against a blind NumPy twin, in every mode."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.algorithms.client_work import NOISE
from stalesim.simulator.scenario.study import merge
from stalesim.simulator.simulation import Prepared, key_of
from stalesim.simulator.timeline import NO_WORKER, Kind
from tests.reference import federated_twin as twin
from tests.runs import execute, prepared, rows_of
from tests.support import SGD, Memory

BATCH = 7
BASE = merge(
    SGD,
    {
        "engine": {"precision": "float64", "chunk": 32},
        "stop": {"commits": 40},
        "evaluate": {"every": {"commits": 40}, "metrics": ["objective"]},
        "algorithm": {"kind": "sgd", "step_size": 0.2, "batch": BATCH},
        "clients": {"compute": {"law": "expon", "scale": "m"}},
    },
)
ASYNC = {"kind": "fed_async", "step_size": 0.2, "batch": BATCH}
BUFFER = {
    "algorithm": {
        "kind": "fed_buff",
        "step_size": 0.2,
        "server_step_size": 0.7,
        "batch": BATCH,
    },
    "protocol": {"kind": "buffered", "size": 3},
}
SVM = {"problem": {"loss": "hinge"}}
BINARY_SVM = {
    "problem": {
        "data": {"kind": "breast_cancer", "scale": "standard"},
        "partition": {"kind": "iid", "clients": 5},
        "loss": "hinge",
    }
}


def sgd(**options: Any) -> dict[str, Any]:
    return {"algorithm": options}


RUNS: dict[str, tuple[dict[str, Any], ...]] = {
    "hinge": (SVM,),
    "hinge of two classes": (BINARY_SVM,),
    "local steps": (sgd(local_steps=3, local_step_size=0.1),),
    "federated averaging": (sgd(local_steps=2), {"protocol": {"kind": "synchronous"}}),
    "polynomial": (sgd(weight={"kind": "polynomial", "exponent": 0.7}),),
    "hinge weight": (sgd(weight={"kind": "hinge", "slope": 2.0, "late": 1.0}),),
    "inverse": (sgd(weight={"kind": "inverse"}),),
    "inverse, three together": (
        sgd(weight={"kind": "inverse"}),
        {"protocol": {"kind": "t_synchronous", "t": 3}},
    ),
    "delay adaptive": (
        sgd(weight={"kind": "delay_adaptive", "concurrency": 2, "smoothness": 3.0}),
    ),
    "compensated": (sgd(compensation={"strength": 2.0}),),
    "adaptively compensated": (sgd(compensation={"strength": 0.1, "adaptive": True}),),
    **{
        kind: (sgd(step_size=0.02, optimizer={"kind": kind}),)
        for kind in ("momentum", "adam", "yogi", "adagrad", "rmsprop")
    },
    "clipped by sample": (sgd(mechanism={"clip_bound": 1.0, "multiplier": 0.5}),),
    "clipped as a whole": (
        sgd(
            local_steps=2,
            mechanism={
                "clip_bound": 2.0,
                "multiplier": 0.01,
                "clip": "contribution",
                "law": "spherical_laplace",
            },
        ),
    ),
    "FedAsync": ({"algorithm": ASYNC | {"local_steps": 3, "proximal": 0.1}},),
    "FedAsync, hinge": (
        {"algorithm": ASYNC | {"weight": {"kind": "hinge", "slope": 1.0, "late": 1.0}}},
    ),
    "FedAsync, constant, private": (
        {
            "algorithm": ASYNC
            | {
                "weight": {"kind": "constant"},
                "mechanism": {"clip_bound": 1.0, "multiplier": 0.2},
            }
        },
    ),
    "FedBuff": (BUFFER, {"algorithm": {"local_steps": 2}}),
    "FedBuff by window, adam": (
        BUFFER,
        {
            "protocol": {"kind": "buffered", "window": 1.5, "size": None},
            "algorithm": {"server_step_size": 0.02, "optimizer": {"kind": "adam"}},
        },
    ),
}


def program_of(run: Prepared, shape: tuple[int, int]) -> list[twin.Row]:
    """Returns what happens in a run, as the twin takes it."""
    rows, samples = rows_of(run)
    config = run.run.scenario.algorithm
    program = []
    for row in range(rows.time.size):
        contributions = []
        for column in np.flatnonzero(rows.worker[row] != NO_WORKER):
            client, job = int(rows.worker[row, column]), int(rows.job[row, column])
            noise = None
            if config.mechanism is not None:
                key = jax.random.fold_in(key_of(run.run.seed), client)
                zero, one = jnp.zeros(shape[0] * shape[1], float), jnp.asarray(1.0)
                draw = NOISE[config.mechanism.law]
                unit = draw(jax.random.fold_in(key, job), zero, one).value
                noise = np.asarray(unit).reshape(shape)
            batches = list(samples[row, column].reshape(config.local_steps, BATCH))
            read = int(rows.read_version[row, column])
            contributions.append(twin.Contribution(client, read, batches, noise))
        kind = "commit" if rows.kind[row] == Kind.COMMIT else "contribute"
        program.append(twin.Row(kind, tuple(contributions)))
    return program


def options_of(config: Any) -> twin.Options:
    """Returns a configuration's numbers, as the twin takes them."""
    found: dict[str, Any] = {"step_size": config.step_size}
    for name in ("local_step_size", "server_step_size", "mixing", "proximal"):
        if hasattr(config, name):
            found[name] = getattr(config, name)
    parts = {
        "weight": twin.Weight,
        "compensation": twin.Compensation,
        "optimizer": twin.Optimizer,
        "mechanism": twin.Mechanism,
    }
    for name, kind in parts.items():
        if (part := getattr(config, name, None)) is not None:
            values = part.model_dump(exclude={"law", "budget"})
            found[name] = kind(**values)
    return twin.Options(**found)


@pytest.mark.parametrize("name", RUNS)
def test_kernels_agree_with_the_twin(name: str) -> None:
    with jax.enable_x64(True):
        run = prepared(BASE, *RUNS[name], seed=5)
        memory, _ = execute([run])
        problem = run.problem
        width = problem.x.shape[1]
        shape = (run.shape.num_outputs, width)
        program = program_of(run, shape)
    config = run.run.scenario.algorithm
    data = twin.Problem(
        np.asarray(problem.x), np.asarray(problem.y), problem.loss, float(problem.l2)
    )
    found = twin.run(config.kind, data, program, np.zeros(shape), options_of(config))
    check(memory, found, program)
    # Through the metric, the last model: a sum of squares of everything in it.
    with jax.enable_x64(True):
        objective = problem.objective(jnp.asarray(found.versions[-1]))
    last = memory.column("evaluations", "objective")[-1]
    np.testing.assert_allclose(last, objective, rtol=1e-9)


def check(memory: Memory, found: twin.Result, program: list[twin.Row]) -> None:
    """Compares diagnostics, which the trace keeps in float32."""
    bears = np.array([bool(row.contributions) for row in program])
    loss = np.array([row.loss for row in found.rows])[bears]
    np.testing.assert_allclose(
        memory.column("commits", "loss")[bears], loss, rtol=2e-6, atol=1e-7
    )
    weights = np.array([np.mean(row.weights) for row in found.rows if row.weights])
    np.testing.assert_allclose(
        memory.column("commits", "weight")[bears], weights, rtol=2e-6
    )
    if any(not np.isnan(row.clipped) for row in found.rows):
        clipped = np.array([row.clipped for row in found.rows])
        np.testing.assert_allclose(
            memory.column("commits", "clipped_fraction"), clipped, atol=1e-6
        )
