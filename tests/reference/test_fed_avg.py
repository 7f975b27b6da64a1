"""FedAvg against a NumPy twin of its Algorithm 1, in every mode, and its limits.

Two ways to the same float64 model agree to 1e-9 over some ten rounds of some twenty
steps each.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.scenario.study import merge
from stalesim.simulator.simulation import Prepared, prepare_together
from stalesim.simulator.timeline import NO_SAMPLE, NO_WORKER
from tests.reference import fed_avg_twin as twin
from tests.reference.federated_twin import Problem
from tests.runs import execute, prepared, rows_of
from tests.support import SGD, Memory

BASE = merge(
    SGD,
    {
        "engine": {"precision": "float64", "chunk": 16},
        "problem": {"partition": {"kind": "dirichlet", "clients": 6, "alpha": 0.3}},
        "stop": {"commits": 8},
        "evaluate": {"every": {"commits": 1}, "metrics": ["objective"]},
        "protocol": {"kind": "synchronous"},
        "clients": {"compute": {"law": "expon", "scale": "m"}},
    },
)
EPOCHS = {"kind": "fed_avg", "local_epochs": 2, "step_size": 0.2, "batch": 32}
RUNS: dict[str, tuple[dict[str, Any], ...]] = {
    "epochs": ({"algorithm": EPOCHS},),
    "one batch of all": ({"algorithm": EPOCHS | {"batch": 10_000}},),
    "steps": (
        {"algorithm": {**EPOCHS, "local_epochs": None, "local_steps": 5, "batch": 150}},
    ),
    "shuffled steps": (
        {
            "algorithm": {
                **EPOCHS,
                "local_epochs": None,
                "local_steps": 3,
                "batch": 150,
                "sampling": "shuffled",
            }
        },
    ),
    "some clients in flight": (
        {"algorithm": EPOCHS, "clients": {"selection": {"in_flight": 3}}},
    ),
    "over-selection": (
        {"algorithm": EPOCHS, "protocol": {"kind": "synchronous", "wait_for": 4}},
    ),
    "all alike": ({"algorithm": EPOCHS | {"weighting": "equal"}},),
    "FedProx": ({"algorithm": EPOCHS | {"proximal": 0.5}},),
    "half of the way": ({"algorithm": EPOCHS | {"server_step_size": 0.5}},),
}


def rounds_of(run: Prepared) -> list[list[twin.Client]]:
    """Returns what the clients of each round go through, as the twin takes it."""
    rows, samples = rows_of(run)
    sizes = run.shares.num_samples
    rounds = []
    for row in range(rows.time.size):
        clients = []
        for column in np.flatnonzero(rows.worker[row] != NO_WORKER):
            batches = samples[row, column].reshape(-1, run.sampler.size)
            kept = [batch[batch != NO_SAMPLE] for batch in batches]
            kept = [batch for batch in kept if batch.size]
            client = int(rows.worker[row, column])
            clients.append(twin.Client(sizes[client], kept))
        rounds.append(clients)
    return rounds


def objectives(run: Prepared, models: list[np.ndarray]) -> list[float]:
    with jax.enable_x64(True):
        return [float(run.problem.objective(jnp.asarray(model))) for model in models]


@pytest.mark.parametrize("name", RUNS)
def test_kernels_agree_with_the_twin(name: str) -> None:
    with jax.enable_x64(True):
        run = prepared(BASE, *RUNS[name], seed=5)
        memory, _ = execute([run])
    problem, config = run.problem, run.run.scenario.algorithm
    data = Problem(
        np.asarray(problem.x), np.asarray(problem.y), problem.loss, float(problem.l2)
    )
    shape = (run.shape.num_outputs, problem.x.shape[1])
    models = twin.run(
        data,
        np.zeros(shape),
        rounds_of(run),
        config.step_size,
        mu=config.proximal,
        server_step_size=config.server_step_size,
        weighted=config.weighting == "samples",
    )
    found = memory.column("evaluations", "objective")
    np.testing.assert_allclose(found, objectives(run, models), rtol=1e-9)
    assert np.unique(found).size == found.size


@pytest.mark.parametrize("name", ["epochs", "some clients in flight", "steps"])
def test_modes_agree(name: str) -> None:
    def in_mode(mode: str) -> np.ndarray:
        with jax.enable_x64(True):
            runs = [prepared(BASE, *RUNS[name], seed=s, number=s) for s in (3, 4)]
            if mode == "batched":  # of other shares, and so of other numbers of steps
                assert len({run.sampler.width for run in runs}) == 1 + (name != "steps")
                runs = prepare_together([run.run for run in runs])
                memory, _ = execute(runs, mode)
            else:
                memory = Memory()
                for run in runs:
                    own, _ = execute([run], mode)
                    for table, parts in own.tables.items():
                        memory.tables.setdefault(table, []).extend(parts)
        return memory.column("evaluations", "objective", 3)

    compiled = in_mode("compiled")
    for mode in ("stepwise", "batched"):
        np.testing.assert_allclose(in_mode(mode), compiled, rtol=1e-9)


def test_a_step_of_all_samples_is_gradient_descent() -> None:
    """Equal shares, one full batch: McMahan et al. (2017), section 2, FedSGD."""
    equal = {"problem": {"partition": {"kind": "iid", "clients": 1}}}
    fed = {"algorithm": {**EPOCHS, "local_epochs": 1, "batch": 10_000}}
    plain = {
        "algorithm": {"kind": "sgd", "step_size": 0.2, "batch": 1437},
        "protocol": {"kind": "centralised"},
    }
    with jax.enable_x64(True):
        one, _ = execute([prepared(BASE, fed, seed=2)])
        base = merge(BASE, equal)
        central, _ = execute([prepared(base, plain, seed=2)])
    # Clients of any sizes, weighted by them: their mean gradient is that of all data.
    np.testing.assert_allclose(
        one.column("evaluations", "objective"),
        central.column("evaluations", "objective"),
        rtol=1e-9,
    )


def test_equal_shares_and_one_step_are_synchronous_sgd() -> None:
    iid = {"problem": {"partition": {"kind": "iid", "clients": 3}}}
    step = {"step_size": 0.2, "batch": 20}
    found = []
    for algorithm in (
        {"kind": "sgd", **step},
        {"kind": "fed_avg", "local_steps": 1, **step},
    ):
        base = merge(BASE, {"problem": {"partition": None}})
        with jax.enable_x64(True):
            run = prepared(merge(base, iid), {"algorithm": algorithm}, seed=2)
            assert len(set(run.shares.num_samples)) == 1
            memory, _ = execute([run])
        found.append(memory.column("evaluations", "objective"))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)
