"""Chains of stages: of others', each a few lines, and those of plain SGD."""

import dataclasses
from functools import cache
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.algorithms.base import Event
from stalesim.simulator.algorithms.federated.aggregation import AtOnce
from stalesim.simulator.algorithms.federated.client import LocalSteps
from stalesim.simulator.algorithms.federated.server import Mixing, Stepping
from stalesim.simulator.algorithms.federated.stages import (
    AdjustStage,
    Aggregate,
    AggregateStage,
    SendStage,
)
from stalesim.simulator.algorithms.federated.weights import (
    HingeWeight,
    InverseWeight,
    PolynomialWeight,
    StalenessWeight,
    Weighed,
)
from stalesim.simulator.config import catalogue
from stalesim.simulator.config.plugins import Plugin
from stalesim.simulator.timeline import NO_WORKER, Kind
from tests.runs import prepared
from tests.support import SGD

STEP = 0.3


class Median(AggregateStage):
    """The median of a row's contributions, coordinate by coordinate."""

    def __call__(self, row, contributions, state):
        present = row.event.present()
        there = jnp.where(present[:, None, None], contributions.message, jnp.nan)
        direction = contributions.scaled(jnp.nanmedian(there, axis=0))
        return Aggregate(direction, present.any(), jnp.ones(())), state, {}


class TopK(SendStage):
    """Sends the k largest numbers; what is left is added to the next message."""

    k: int = eqx.field(static=True)

    def start(self, problem, weights):
        return jnp.zeros_like(weights)

    def __call__(self, job, work, state):
        owed = work.message + state
        least = jnp.sort(jnp.abs(owed).ravel())[-self.k]
        sent = jnp.where(jnp.abs(owed) >= least, owed, 0)
        return work._replace(message=sent), owed - sent


class CentralNoise(AdjustStage):
    """Adds noise to the aggregate, at the server."""

    std: float = eqx.field(static=True)

    @property
    def draws(self):
        return True

    def __call__(self, row, step, state):
        noise = jax.random.normal(row.server_key, step.direction.shape)
        return step._replace(direction=step.direction + self.std * noise), state


@cache
def plan() -> Any:
    return prepared(SGD)


def row(*workers: int, version: int = 0, kind: Kind = Kind.COMMIT) -> Event:
    """Returns a row in which workers have read the model as it is."""
    W = len(workers)
    samples = np.random.default_rng(version).integers(0, 1000, (W, 11))
    return Event(
        kind=jnp.int32(kind.value),
        worker=jnp.array(workers, jnp.int32),
        job=jnp.full(W, version, jnp.int32),
        version=jnp.int32(version),
        staleness=jnp.zeros(W, jnp.int32),
        read_slot=jnp.zeros(W, jnp.int32),
        keep_slot=jnp.int32(0),
        samples=jnp.asarray(samples, jnp.int32),
    )


def stepped(chain: Any, *rows: Event) -> tuple[Any, list[Any]]:
    """Returns the state after some rows, and what clients sent in each."""
    problem, sent = plan().problem, []
    state = chain.init(problem, jax.random.key(0))
    reveal, step = eqx.filter_jit(chain.reveal), eqx.filter_jit(chain.step)
    for event in rows:
        sent.append(np.asarray(reveal(problem, state, event)["message"]))
        state, _ = step(problem, state, event)
    return state, sent


def test_plain_sgd_is_a_chain_of_three_stages() -> None:
    chain: Any = plan().kernel
    assert isinstance(chain.work, LocalSteps)
    assert (chain.sent, chain.received, chain.server.adjusted) == ((), (), ())
    assert isinstance(chain.server.aggregation, AtOnce)
    state = chain.init(plan().problem, jax.random.key(0))
    states = state.key, state.clients, state.received, state.weighing, state.server
    assert not jax.tree.leaves(states), "no stage keeps anything"


def test_another_aggregation_is_one_class() -> None:
    here = plan()
    chain: Any = dataclasses.replace(here.kernel, server=Stepping(Median()))
    event = row(0, 1, 2, 3, NO_WORKER)
    start = np.asarray(chain.init(here.problem, jax.random.key(0)).weights)
    state, (sent,) = stepped(chain, event)
    expected = start - STEP * np.median(sent[:4], axis=0)
    np.testing.assert_allclose(state.weights, expected, rtol=1e-6, atol=1e-7)


def test_another_way_to_send_has_a_state_for_each_client() -> None:
    here = plan()
    chain: Any = dataclasses.replace(here.kernel, sent=(TopK(7),))
    rows = [row(2), row(4, version=1), row(2, version=2)]
    state, sent = stepped(chain, *rows)
    assert [np.count_nonzero(message) for message in sent] == [7, 7, 7]
    (_, owed) = state.clients
    assert not owed[jnp.array([0, 1, 3])].any()
    # What client 2 has sent and what it owes is all of its gradients.
    model, total = chain.init(here.problem, jax.random.key(0)).weights, 0
    for event, message in zip(rows, sent, strict=True):
        if event.worker[0] == 2:
            plain = here.kernel.init(here.problem, jax.random.key(0))
            plain = plain._replace(weights=model)
            total += here.kernel.reveal(here.problem, plain, event)["gradient"][0]
        model = model - STEP * message[0]
    paid = sent[0][0] + sent[2][0] + owed[2]
    np.testing.assert_allclose(paid, total, rtol=1e-5, atol=1e-7)


def test_noise_of_the_server_is_one_class_and_no_row_changes_nothing() -> None:
    here = plan()
    noisy = dataclasses.replace(
        here.kernel, server=Stepping(AtOnce(), (CentralNoise(0.5),))
    )
    one, two = (
        np.asarray(stepped(chain, row(1))[0].weights) for chain in (noisy, here.kernel)
    )
    # 650 numbers of variance (0.3 * 0.5)^2: their mean square is within 6 / sqrt(325).
    assert np.mean((one - two) ** 2) == pytest.approx(0.15**2, rel=0.34)
    before = noisy.init(here.problem, jax.random.key(0))
    after, _ = noisy.step(here.problem, before, row(NO_WORKER, kind=Kind.NULL))
    np.testing.assert_array_equal(before.weights, after.weights)


def test_a_stage_in_another_place_is_refused() -> None:
    chain: Any = plan().kernel
    with pytest.raises(
        TypeError, match=r"^sent must be of the kind SendStage, got Med"
    ):
        dataclasses.replace(chain, sent=(Median(),))
    with pytest.raises(
        TypeError, match=r"^server must be of the kind ServerStage, got AtO"
    ):
        dataclasses.replace(chain, server=AtOnce())
    with pytest.raises(TypeError, match=r"^server\.adjusted must be .*, got Mixing;"):
        Stepping(AtOnce(), (Mixing(jnp.float32(1)),))  # pyright: ignore


# Weights.


class Halved(StalenessWeight):
    """Each commit of staleness halves a contribution."""

    kind: Literal["halved"] = "halved"
    most: float = 1.0

    @staticmethod
    def factor(row: Weighed, most: Any) -> Any:
        return most * 0.5**row.staleness


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        (PolynomialWeight(exponent=2), [1, 1 / 4, 1 / 36]),
        (HingeWeight(slope=2, late=1), [1, 1, 1 / 9]),
        (InverseWeight(concurrency=2), [1, 1, 2 / 5]),
        (Halved(most=3), [3, 1.5, 3 / 32]),
    ],
)
def test_a_weight_is_one_class_that_computes(
    weight: StalenessWeight, expected: list[float]
) -> None:
    """With NumPy, as numerics are written for any arrays."""
    there: Any = None
    seen = Weighed(np.array([0.0, 1.0, 5.0]), 0.1, np.arange(3))
    factors = type(weight).factor(seen, **weight.numbers(there, there))
    np.testing.assert_allclose(factors, expected, rtol=1e-12)


def test_another_weight_is_known_by_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, tuple[Plugin, ...]] = dict.fromkeys(catalogue.KINDS, ())
    known["weights"] = (Plugin(Halved, "mine"),)
    monkeypatch.setattr(catalogue, "all_registered", lambda: known)
    names = [part.__name__ for part in catalogue.parts("weights")]
    assert names[-2:] == ["DelayAdaptiveWeight", "Halved"]
