"""Chains of stages: of others', of named methods, and written out in a scenario."""

import dataclasses
from functools import cache
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stalesim.simulator.catalogue.algorithms.federated.chain import (
    AdjustPart,
    AggregatePart,
    SendPart,
    StagePart,
)
from stalesim.simulator.catalogue.algorithms.federated.clients import LocalWork
from stalesim.simulator.catalogue.algorithms.federated.part import Sgd
from stalesim.simulator.catalogue.algorithms.federated.server import Mean, ServerStep
from stalesim.simulator.catalogue.algorithms.federated.weights import (
    HingeWeight,
    InverseWeight,
    PolynomialWeight,
    StalenessWeight,
    Weighed,
)
from stalesim.simulator.engine.kernel import Event
from stalesim.simulator.engine.simulation import prepare
from stalesim.simulator.files.timeline import NO_WORKER, Kind
from stalesim.simulator.parts import catalogue
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.parts.plugins import Plugins
from stalesim.simulator.problem.models.parts import ProblemShape
from stalesim.simulator.scenario.reading import loads
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import Run, expand
from tests.runs import execute, prepared
from tests.support import SGD, scenario

STEP = 0.3


class Median(AggregatePart):
    """The median of a row's contributions, coordinate by coordinate."""

    kind: Literal["median"] = "median"

    def __call__(self, row, contributions, state):
        present = row.event.present()
        there = jnp.where(present[:, None, None], contributions.message, jnp.nan)
        direction = contributions.scaled(jnp.nanmedian(there, axis=0))
        return row.step(direction, present.any(), jnp.ones(())), state, {}


class LargestSent(SendPart):
    """Sends the k largest numbers; what is left is added to the next message."""

    kind: Literal["top_k"] = "top_k"
    k: int

    def sent_bytes(self, given, shape):
        return 8 * self.k

    def start(self, problem, weights):
        return jnp.zeros_like(weights)

    def __call__(self, job, work, state):
        owed = work.message + state
        least = jnp.sort(jnp.abs(owed).ravel())[-self.k]
        sent = jnp.where(jnp.abs(owed) >= least, owed, 0)
        return work._replace(message=sent), owed - sent


class CentralNoise(AdjustPart):
    """Adds noise to the aggregate, at the server."""

    kind: Literal["central_noise"] = "central_noise"
    draws: ClassVar[bool] = True
    std: float

    def __call__(self, row, step, state):
        noise = jax.random.normal(row.server_key, step.direction.shape)
        return step._replace(direction=step.direction + self.std * noise), state


@cache
def plan() -> Any:
    return prepared(SGD)


def made(stage: StagePart) -> Any:
    """Returns what a run has of a stage."""
    return stage.make(None, None)


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
    stages = chain.work, chain.aggregation, chain.server
    assert [type(stage) for stage in stages] == [LocalWork, Mean, ServerStep]
    assert (chain.sent, chain.received, chain.adjusted) == ((), (), ())
    state = chain.init(plan().problem, jax.random.key(0))
    states = state.key, state.clients, state.received, state.weighing, state.stepping
    assert not jax.tree.leaves(states), "no stage keeps anything"


def test_another_aggregation_is_one_class() -> None:
    here = plan()
    chain: Any = dataclasses.replace(here.kernel, aggregation=made(Median()))
    event = row(0, 1, 2, 3, NO_WORKER)
    start = np.asarray(chain.init(here.problem, jax.random.key(0)).weights)
    state, (sent,) = stepped(chain, event)
    expected = start - STEP * np.median(sent[:4], axis=0)
    np.testing.assert_allclose(state.weights, expected, rtol=1e-6, atol=1e-7)


def test_another_way_to_send_has_a_state_for_each_client() -> None:
    here = plan()
    chain: Any = dataclasses.replace(here.kernel, sent=(made(LargestSent(k=7)),))
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
    noisy = dataclasses.replace(here.kernel, adjusted=(made(CentralNoise(std=0.5)),))
    one, two = (
        np.asarray(stepped(chain, row(1))[0].weights) for chain in (noisy, here.kernel)
    )
    # 650 numbers of variance (0.3 * 0.5)^2: their mean square is within 6 / sqrt(325).
    assert np.mean((one - two) ** 2) == pytest.approx(0.15**2, rel=0.34)
    before = noisy.init(here.problem, jax.random.key(0))
    after, _ = noisy.step(here.problem, before, row(NO_WORKER, kind=Kind.NULL))
    np.testing.assert_array_equal(before.weights, after.weights)


class MedianSgd(Sgd):
    kind: Literal["median_sgd"] = "median_sgd"  # pyright: ignore

    @property
    def stages(self):  # pyright: ignore
        return tuple(Median() if type(s) is Mean else s for s in super().stages)


class CompressedSgd(Sgd):
    kind: Literal["compressed_sgd"] = "compressed_sgd"  # pyright: ignore

    @property
    def stages(self):  # pyright: ignore
        work, *rest = super().stages
        return (work, LargestSent(k=3), *rest)


def test_a_named_method_puts_a_stage_into_its_chain() -> None:
    method = MedianSgd(step_size=0.1, batch=4)
    kinds = [stage["kind"] for stage in method.opened()["chain"]]
    assert kinds == ["local_work", "weigh", "median", "step"]


def test_what_a_stage_makes_smaller_weighs_less() -> None:
    shape = ProblemShape(100, 10, 1, 5, 10, 4)
    plain = Sgd(step_size=0.1, batch=4).messages(shape, common=False)
    fewer = CompressedSgd(step_size=0.1, batch=4).messages(shape, common=False)
    assert plain == {"up": 40, "down": 40}
    assert fewer == {"up": 24, "down": 40}


# Chains that are written out in a scenario.

NAMED = {
    "sgd": {"step_size": 0.3, "local_step_size": 0.1, "compensation": {"strength": 1}},
    "fed_avg": {"step_size": 0.1, "local_epochs": 1, "proximal": 0.1},
    "fed_async": {"step_size": 0.1, "local_steps": 2, "sampling": "replacement"},
    "fed_buff": {
        "local_steps": 2,
        "local_optimizer": {"kind": "sgd", "learning_rate": 0.1, "momentum": 0.5},
        "optimizer": {"kind": "amsgrad", "learning_rate": 0.01},
        "staleness_threshold": 1,
        "mechanism": {"clip": "contribution", "clip_bound": 1, "multiplier": 0.5},
    },
}
NAMED |= {
    "scaffold": {"step_size": 0.1, "local_steps": 2, "server_step_size": 0.5},
    "fed_nova": {"step_size": 0.1, "local_steps": 4, "speeds": [1, 2, 3, 3, 4]},
    "fed_dyn": {"step_size": 0.1, "local_epochs": 1, "proximal": 0.1},
    "streaming_diloco": {"step_size": 0.1, "local_steps": 3, "fragments": 2},
}
ROUNDS = dict.fromkeys(
    ("fed_avg", "scaffold", "fed_nova", "fed_dyn", "streaming_diloco"), "synchronous"
)


def named(kind: str, **more: Any) -> Scenario:
    protocol: dict[str, Any] = {"kind": ROUNDS.get(kind, "asynchronous")}
    protocol = {"kind": "buffered", "size": 2} if kind == "fed_buff" else protocol
    algorithm = {"kind": kind, "batch": 11, **NAMED[kind], **more}
    ends = {"stop": {"commits": 12}, "evaluate": {"every": {"commits": 6}}}
    changes: dict[str, Any] = {"algorithm": algorithm, "protocol": protocol, **ends}
    if kind == "fed_buff":
        changes["privacy"] = {}
    return scenario(SGD, changes)


def opened(method: Scenario) -> Scenario:
    """Returns the scenario with its chain written out."""
    tree = method.model_dump(mode="json") | {"algorithm": method.algorithm.opened()}
    return Scenario.model_validate(tree)


def written_out(tables: dict[str, list[dict[str, Any]]]) -> str:
    return repr(
        {
            (table, name): [np.asarray(value).tolist() for value in column]
            for table, parts in tables.items()
            for part in parts
            for name, column in part.items()
        }
    )


@pytest.mark.parametrize("kind", NAMED)
def test_an_opened_chain_gives_the_same_trace(kind: str) -> None:
    method = named(kind)
    written = opened(method)
    assert written.algorithm.kind == "chained"
    assert written.algorithm.opened() == method.algorithm.opened()
    assert written.algorithm.structure() == method.algorithm.structure()
    plans = [prepare(Run(0, "base", {}, 0, 1, one)) for one in (method, written)]
    (one, _), (two, _) = (execute([each]) for each in plans)
    assert "commits" in one.tables
    assert written_out(one.tables) == written_out(two.tables)
    if kind == "fed_buff":
        first, second = (each.guarantees for each in plans)
        assert first == second != ()


def test_a_budget_and_the_speeds_of_a_chain_are_those_of_the_method() -> None:
    budget = {"epsilon": 2, "releases": 100}
    private = {"clip_bound": 1, "budget": budget}
    method = named("sgd", mechanism=private).algorithm
    chain = opened(named("sgd", mechanism=private)).algorithm
    assert chain.clips_samples
    assert chain.noise_law == "gaussian"
    places = method.calibrated.key, chain.calibrated.key
    assert places == ("algorithm.mechanism.budget", "algorithm.chain.1.budget")
    assert chain.guarantees([100], 11, 10) == method.guarantees([100], 11, 10)
    uneven = opened(named("sgd", local_steps=6, speeds=[1, 2, 3, 3, 1])).algorithm
    sampler = uneven.sampler(1, [np.arange(50)] * 5, None)
    assert sampler.own_steps.tolist() == [2, 4, 6, 6, 2]


YAML = """\
name: own
problem: {data: {kind: digits}, partition: {kind: iid, clients: 4}}
clients: {compute: {law: expon}}
protocol: {kind: asynchronous}
algorithm: {step_size: 0.1, batch: 8, chain: [CHAIN]}
stop: {commits: 10}
evaluate: {every: {commits: 5}}
"""
PLAIN = "{kind: local_work}, {kind: weigh}, {kind: mean}, {kind: step}"


def test_options_of_a_stage_are_swept_by_its_place() -> None:
    sweep = "sweep: {algorithm.chain.0.local_steps: [1, 3]}\n"
    runs = expand(loads(YAML.replace("CHAIN", PLAIN) + sweep, "swept.yaml"))
    chains = [run.scenario.algorithm for run in runs]
    assert [chain.chain[0].local_steps for chain in chains] == [1, 3]
    assert [chain.steps_per_job for chain in chains] == [1, 3]
    assert all(len(chain.chain) == 4 for chain in chains)
    beyond = YAML.replace("CHAIN", PLAIN) + sweep.replace("chain.0", "chain.4")
    with pytest.raises(ScenarioError, match=r"algorithm\.chain must be a list"):
        expand(loads(beyond, "swept.yaml"))


def test_runs_that_differ_in_numbers_of_stages_share_a_program() -> None:
    work, rest = PLAIN.split(", ", 1)
    clipped = f"{work}, {{kind: clip, clip_bound: 1}}, {rest}"
    text = YAML.replace("CHAIN", clipped)
    one = loads(text, "one.yaml").algorithm
    two = loads(text.replace("bound: 1", "bound: 2"), "two.yaml")
    assert one.structure() == two.algorithm.structure()
    longer = text.replace("local_work", "local_work, local_steps: 2")
    assert loads(longer, "three.yaml").algorithm.structure() != one.structure()


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
    known: Plugins = {kind: {} for kind in catalogue.BASES}
    known["weights"] = {Halved: "mine"}
    monkeypatch.setattr(catalogue, "registered", lambda: known)
    names = [part.__name__ for part in catalogue.parts("weights")]
    assert names[-1] == "Halved"
