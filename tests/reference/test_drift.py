"""FedNova and FedDyn in slow, plain NumPy, and what they and SCAFFOLD refuse.

Sources: Wang et al. (2020), FedNova with a_i = (1, ..., 1); Acar et al. (2021),
Algorithm 1, with local steps in place of the minimum. SCAFFOLD is in `test_along`.
"""

from typing import Any

import jax
import numpy as np
import pytest
from pydantic import ValidationError

from stalesim.simulator.catalogue.algorithms.federated.chain import WrittenChain
from stalesim.simulator.catalogue.algorithms.federated.drift import (
    FedDyn,
    FedNova,
    Scaffold,
)
from stalesim.simulator.engine.simulation import Prepared
from tests.reference import server_twin as twin
from tests.reference.methods_support import (
    SEED,
    K,
    assert_models_alike,
    jobs_of,
    problem_of,
    start_of,
    tree_of,
)
from tests.runs import execute, prepared

ETA, ALPHA, SERVER_ETA = 0.1, 0.3, 0.7


def nova(plan: Prepared) -> twin.Server:
    """Returns the server of FedNova at the end of a run."""
    problem, start = problem_of(plan), start_of(plan)
    server = twin.Server(problem, start, K, ETA, SERVER_ETA)
    for row in jobs_of(plan):
        x, effective, normalised = server.models[-1], 0.0, np.zeros_like(start)
        n = sum(job.num_samples for job in row.jobs)
        for job in row.jobs:
            y, tau, p = x, len(job.batches), job.num_samples / n
            for batch in job.batches:
                y = y - ETA * twin.of_batch(problem, y, batch)[1]
            effective += p * tau
            normalised += p * (x - y) / (ETA * tau)
        server.becomes(x - SERVER_ETA * effective * ETA * normalised)
    return server


def dynamic(plan: Prepared) -> twin.Server:
    """Returns the server of FedDyn at the end of a run."""
    problem, theta = problem_of(plan), start_of(plan)
    server = twin.Server(problem, theta, K, ETA, 1.0)
    h, gradients = np.zeros_like(theta), np.zeros((K, *theta.shape))
    for row in jobs_of(plan):
        ends = []
        for job in row.jobs:
            mine, y = gradients[job.client], theta
            for batch in job.batches:
                pulled = ALPHA * (y - theta) - mine
                y = y - ETA * (twin.of_batch(problem, y, batch)[1] + pulled)
            gradients[job.client] = mine - ALPHA * (y - theta)
            ends.append(y)
        h = h - ALPHA / K * sum(y - theta for y in ends)
        theta = np.mean(ends, axis=0) - h / ALPHA
        server.becomes(theta)
    return server


UNEVEN = {"local_steps": 5, "speeds": [1, 2, 3, 4, 5]}
NOVA = {"kind": "fed_nova", "server_step_size": SERVER_ETA}
DYNAMIC = {"kind": "fed_dyn", "proximal": ALPHA}
THREE = {"clients": {"selection": {"in_flight": 3}}}
SIZES = {"problem": {"partition": {"kind": "sizes", "clients": K, "weights": "m"}}}
CASES: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "FedNova, some clients": (nova, NOVA | UNEVEN, THREE),
    "FedNova, epochs": (nova, NOVA | {"local_epochs": 1}, SIZES),
    "FedDyn, some clients": (dynamic, DYNAMIC | {"local_steps": 3}, THREE),
    "FedDyn, unequal steps": (dynamic, DYNAMIC | UNEVEN, {}),
    "FedDyn, one step": (dynamic, DYNAMIC, THREE),
}


def tree(method: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    rounds = tree_of({"kind": "synchronous"}, {"step_size": ETA} | method, **changes)
    return rounds | {"stop": {"commits": 30}}


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_of_the_algorithm(name: str) -> None:
    play, method, changes = CASES[name]
    with jax.enable_x64(True):
        plan = prepared(tree(method, changes), seed=SEED)
        memory, _ = execute([plan])
        assert_models_alike(memory, play(plan))


@pytest.mark.parametrize("method", [NOVA | UNEVEN, DYNAMIC | UNEVEN])
def test_row_after_row_gives_the_same(method: dict[str, Any]) -> None:
    def objectives(mode: str) -> np.ndarray:
        memory, _ = execute([prepared(tree(method, THREE), seed=SEED)], mode)
        return memory.column("evaluations", "objective")

    with jax.enable_x64(True):
        np.testing.assert_allclose(objectives("stepwise"), objectives("compiled"))


ADAM = {"kind": "adam", "learning_rate": 0.1}
PLAIN = "must be left out with normalise, which divides by numbers of plain steps, got "
REFUSED: list[tuple[type[Any], dict[str, Any], str]] = [
    (Scaffold, {"local_optimizer": ADAM}, "Extra inputs are not permitted"),
    (FedNova, {"local_steps": 1, "proximal": 0.1}, "Extra inputs are not permitted"),
    (FedDyn, {"proximal": 1, "local_optimizer": ADAM}, "Extra inputs"),
    *(
        (
            WrittenChain,
            {
                "chain": [
                    {"kind": "local_work"} | own,
                    {"kind": "normalise"},
                    *({"kind": kind} for kind in ("weigh", "mean", "step")),
                ]
            },
            PLAIN + says,
        )
        for own, says in (
            ({"proximal": 0.1}, "0.1; remove it"),
            ({"local_optimizer": ADAM}, "'adam'; remove it"),
        )
    ),
    (FedDyn, {"proximal": 0}, "greater than 0"),
    *(
        (
            WrittenChain,
            {"chain": [*stages, {"kind": "weigh"}, {"kind": "mean"}, {"kind": "step"}]},
            "control_variate next after controlled_work",
        )
        for stages in (
            [{"kind": "controlled_work"}],
            [{"kind": "local_work"}, {"kind": "control_variate"}],
            [
                {"kind": "controlled_work"},
                {"kind": "clip", "clip_bound": 1},
                {"kind": "control_variate"},
            ],
        )
    ),
]


@pytest.mark.parametrize(("kind", "options", "says"), REFUSED)
def test_what_does_not_fit_is_refused(
    kind: type[Any], options: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValidationError, match=says):
        kind.model_validate({"step_size": 1, "batch": 4} | options)
