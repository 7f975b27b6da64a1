"""What the server sends along with the model, by SCAFFOLD in slow, plain NumPy.

Source: Karimireddy et al. (2020), Algorithm 1, option II.
"""

from functools import cached_property
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydantic import ValidationError

from stalesim.simulator.catalogue.algorithms.federated.chain import (
    Chained,
    ReceivePart,
    StagePart,
)
from stalesim.simulator.catalogue.algorithms.federated.drift import (
    ControlVariate,
    Scaffold,
)
from stalesim.simulator.catalogue.algorithms.federated.part import FedAvg
from stalesim.simulator.engine.simulation import Prepared, prepare
from stalesim.simulator.problem.models.parts import ProblemShape
from stalesim.simulator.scenario.study import Run
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
from tests.runs import execute
from tests.support import Memory, scenario

ETA, SERVER_ETA = 0.1, 0.7


class Anywhere(Scaffold):
    """SCAFFOLD with other protocols than rounds."""

    protocols: ClassVar[tuple[str, ...]] = Chained.protocols


def played(plan: Prepared) -> twin.Server:
    """Returns the server of SCAFFOLD at the end of a run."""
    problem, start = problem_of(plan), start_of(plan)
    server = twin.Server(problem, start, K, ETA, SERVER_ETA)
    c, own = np.zeros_like(start), np.zeros((K, *start.shape))
    variates, moves = [c], []
    for row in jobs_of(plan):
        changes = []
        for job in row.jobs:
            x, sent = server.models[job.version], variates[job.version]
            y, mine = x, own[job.client].copy()
            for batch in job.batches:
                y = y - ETA * (twin.of_batch(problem, y, batch)[1] - mine + sent)
            steps = len(job.batches)
            own[job.client] = mine - sent + (x - y) / (steps * ETA)
            changes.append(own[job.client] - mine)
            moves.append(y - x)
        if changes:
            c = c + len(changes) / K * np.mean(changes, axis=0)
        if row.commits:
            server.becomes(server.models[-1] + SERVER_ETA * np.mean(moves, axis=0))
            variates.append(c)
            moves = []
    return server


def prepared(kind: type[Any] = Anywhere, steps: Any = 2, **changes: Any) -> Prepared:
    own = steps if isinstance(steps, dict) else {"local_steps": steps}
    own |= {"server_step_size": SERVER_ETA}
    method = kind.model_validate({"step_size": ETA, "batch": 2, **own})
    tree = tree_of(**changes) | {"stop": {"commits": 30}}
    with_method = scenario(tree).model_copy(update={"algorithm": method})
    return prepare(Run(0, "base", {}, 0, SEED, with_method))


THREE = {"clients": {"selection": {"in_flight": 3}}}
ROUNDS: dict[str, Any] = {"protocol": {"kind": "synchronous"}}
SIZES = {"kind": "sizes", "clients": K, "weights": "m"}
CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "rounds of some clients": (3, ROUNDS | THREE),
    "stale variates": (2, {}),
    "one local step": (1, ROUNDS | THREE),
    "unequal steps": ({"local_steps": 5, "speeds": [1, 2, 3, 4, 5]}, ROUNDS | THREE),
    "epochs of unequal clients": (
        {"local_epochs": 1},
        ROUNDS | {"problem": {"partition": SIZES}},
    ),
    "variates that move between commits": (
        2,
        {"protocol": {"kind": "buffered", "size": 3}},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_are_those_of_scaffold(name: str) -> None:
    """A client gets the variate of the version that it reads, not the newest one."""
    steps, changes = CASES[name]
    with jax.enable_x64(True):
        plan = prepared(steps=steps, **changes)
        memory, _ = execute([plan])
        assert_models_alike(memory, played(plan))


@pytest.mark.parametrize("mode", ["stepwise", "waves"])
def test_other_engines_send_the_same_along(mode: str) -> None:
    def objectives(mode: str) -> np.ndarray:
        memory: Memory = execute([prepared()], mode)[0]
        return memory.column("evaluations", "objective")

    with jax.enable_x64(True):
        np.testing.assert_allclose(objectives(mode), objectives("compiled"), 1e-12)


class Commits(ReceivePart):
    """Sends along how many commits were made."""

    kind: Literal["commits"] = "commits"
    takes_sums: ClassVar[bool] = True

    def start(self, problem, weights):
        return jnp.zeros_like(weights)

    def along(self, state):
        return state

    def __call__(self, row, contributions, state):
        info = {"sent_along": contributions.along[0, 0]}
        return contributions._replace(info=info), state + 1


def test_one_gradient_of_a_round_knows_what_went_along() -> None:
    class Counted(FedAvg):
        @cached_property
        def stages(self) -> tuple[StagePart, ...]:
            client, *rest = super().stages
            return (client, Commits(), *rest)

    plan = prepared(Counted, 1, **ROUNDS)
    assert plan.kernel.joined(plan.problem) is not None
    memory, _ = execute([plan])
    sent = memory.column("commits", "sent_along")
    np.testing.assert_array_equal(sent, np.arange(30))


def test_messages_count_what_goes_along() -> None:
    shape = ProblemShape(100, 10, 1, 5, 10, 4)
    options = {"step_size": 0.1, "batch": 4, "local_steps": 1}
    plain, along = (
        method(**options).messages(shape, common=False) for method in (FedAvg, Scaffold)
    )
    assert plain == {"up": 40, "down": 40}
    assert along == {"up": 80, "down": 80}


def test_two_stages_that_send_along_are_refused() -> None:
    class Twice(Scaffold):
        @cached_property
        def stages(self) -> tuple[StagePart, ...]:
            client, variate, *rest = super().stages
            return (client, variate, ControlVariate.model_construct(), *rest)

    with pytest.raises(
        ValidationError, match="must be the only stage that sends along"
    ):
        Twice(step_size=0.1, batch=4, local_steps=1)
