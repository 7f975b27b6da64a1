"""FedSGD and FedBCD: block coordinate descent with local steps between exchanges.

Source: Liu, Kang, Zhang, Li, Cheng, Chen, Hong and Yang, *A Communication-Efficient
Collaborative Learning Framework for Distributed Features*; decisions (F-) are in
evidence/pages/decisions.md.
"""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, Num

from ....engine.kernel import Event, Info, Kernel, broadcast_flags, norm, on_device
from ....engine.optimizers import rule as optimizing
from ....engine.optimizers.arrays import (
    ModelArrays,
    UpdateRule,
    arrays_of_party,
    arrays_of_server,
)
from ....engine.optimizers.rule import rule_of
from ....engine.setup import RunSetup
from ....engine.step_rules import Schedule, Steps, resolve
from ....files.timeline import NO_SAMPLE
from ....problem.constants import Constants, measured
from ....problem.convex import largest_step
from ....problem.vertical import Model, VerticalProblem
from ..vafl.stores import Parties, TableStore, age_info, rows
from .part import BlockDescent
from .transfer import TransferDescent

Block = tuple[Float[Array, "W ..."], ...]
"""The numbers that parties move: their weights and, where there is a network over the
outputs, their copies of it, of which the labelled party's alone moves."""
Lone = tuple[Float[Array, "..."], ...]
"""Those of one party."""


Moments = tuple[object, ...] | None
"""States of the optimisers of a block's components; None without an optimiser."""


class BlockDescentState(NamedTuple):
    """The parties' models and, asynchronously, the server's stored values.

    Attributes:
        weights: each party's own model.
        store: outputs as they were uploaded; None in rounds, where all are fresh.
        server: the network over the outputs, a part of the labelled party's model
            (F-29); None where outputs are added up.
        moments: States of each party's optimiser, of its weights and of its copy of the
            network, each array `[M, ...]`; None without an optimiser.
    """

    weights: Float[Array, "M ..."]
    store: TableStore | None
    server: Float[Array, " P0"] | None = None
    moments: Moments = None


class Received(NamedTuple):
    """The parties' view of their batch during their local steps.

    Attributes:
        x: their own features.
        y: targets, `[W, S, ...]`.
        present: Whether each sample is no padding.
        others: the sum of the other parties' outputs, or with a network all parties'.
        error: derivative of the batch's loss by their own outputs, at the exchange.
        labelled: whether they hold the labels: the last party does.
        party: their numbers.
    """

    x: Float[Array, "*W S F"]
    y: Num[Array, "..."]
    present: Bool[Array, "*W S"]
    others: Float[Array, "*W C S"] | Float[Array, "*W M D S"]
    error: Float[Array, "*W D S"]
    labelled: Bool[Array, "*W"]
    party: Int[Array, "*W"]


class BlockDescentKernel(Kernel[VerticalProblem, BlockDescentState]):
    """A row is an exchange and the local steps of its parties.

    Attributes:
        step_size: Step size of the local steps, constant within a row (F-05).
        proximal: mu of the pull towards the model of the exchange (F-14); None without.
        step_bound: largest step size that Theorem 2's proof allows, NaN if unknown.
        optimizer: Each party's optimiser of its local steps; None for plain SGD.
        local_steps: Q.
        frozen: whether parties without labels keep the derivative that they received
            (F-01).
        stored: whether the others' outputs are those last uploaded, and each party has
            its own batch.
    """

    step_size: Schedule | Steps
    proximal: Float[Array, ""] | None
    step_bound: Float[Array, ""]
    optimizer: UpdateRule | None
    local_steps: int = eqx.field(static=True)
    frozen: bool = eqx.field(static=True)
    stored: bool = eqx.field(static=True)

    def init(self, problem: VerticalProblem, key: Key[Array, ""]) -> BlockDescentState:
        weights = problem.start(key)
        store = None
        if self.stored:
            store = TableStore.fill(_parties(problem), weights)
        server = None if problem.server is None else problem.start_server(key)
        moments = None
        if (rule := self.optimizer) is not None:
            everyone = (weights, *_copies(server, problem.num_parties))
            moments = tuple(
                jax.vmap(partial(rule.init, arrays=arrays))(numbers)
                for numbers, arrays in zip(everyone, _arrays(problem), strict=True)
            )
        return BlockDescentState(weights, store, server, moments)

    def step(
        self, problem: VerticalProblem, state: BlockDescentState, event: Event
    ) -> tuple[BlockDescentState, Info]:
        everyone = self._is_of_everyone(problem, event)
        initial = state.weights if everyone else _of_workers(state.weights, event)
        exchange = self._stored if self.stored else self._fresh
        store, x, h, info = exchange(problem, state, event, initial)
        loss, received = _received(problem, event, x, h, state.server)
        num_rounds = event.version * event.worker.size // problem.num_parties
        step_size = self.step_size.at(num_rounds)
        start = (initial, *_copies(state.server, event.worker.size))
        before = state.moments
        if not everyone:
            before = optimizing.of_workers(before, event.worker)
        made = event.job * self.local_steps
        end, first, moments = self._descend(
            problem, start, received, step_size, before, made
        )
        if self.optimizer is not None:
            step_size = self.optimizer.scaled(step_size, made[0])
        (moved, *ends), (gradient, *slopes) = end, first
        here = broadcast_flags(event.present(), initial)
        mine = (event.present() & received.labelled)[:, None]
        share = event.present() / jnp.maximum(event.present().sum(), 1)
        info = {
            "loss": share.astype(loss.dtype) @ loss,
            "gradient_norm": norm(
                jnp.where(here, gradient, 0),
                *(jnp.where(mine, slope, 0) for slope in slopes),
            ),
            "step_size": step_size,
            "step_bound": self.step_bound,
            "moved_norm": norm(
                jnp.where(here, moved - initial, 0),
                *(
                    jnp.where(mine, e - s, 0)
                    for e, s in zip(ends, start[1:], strict=True)
                ),
            ),
            **info,
        }
        if everyone:
            weights = jnp.where(here, moved, initial)
            moments = optimizing.kept(event.present(), moments, before)
        else:
            moments = optimizing.written(state.moments, event.worker, moments)
            weights = state.weights.at[event.worker].set(moved, mode="drop")
        server = state.server
        if server is not None:
            of_labelled = jnp.where(mine, ends[0], 0).sum(axis=0)
            server = jnp.where(mine.any(), of_labelled, server)
        return BlockDescentState(weights, store, server, moments), info

    def read_out(self, state: BlockDescentState) -> Model:
        return state.weights, state.server

    def _is_of_everyone(self, problem: VerticalProblem, event: Event) -> bool:
        """Says whether a row is of all parties in order, so that nothing is gathered.

        In rounds it is as soon as it is so wide; elsewhere parties stand in the order
        of their arrivals.
        """
        return not self.stored and event.worker.size == problem.num_parties

    def _fresh(
        self,
        problem: VerticalProblem,
        state: BlockDescentState,
        event: Event,
        initial: Float[Array, "W ..."],
    ) -> tuple[None, Float[Array, "W S F"], Float[Array, "W M C S"], Info]:
        """Returns features of a common batch, and what all models make of it."""
        # As in `rows`: what padding holds plays no part, since its losses do not.
        x = problem.x.at[:, event.samples[0]].get(mode="clip")
        h = jax.vmap(problem.embedding.apply)(state.weights, x)
        h = jnp.broadcast_to(h, (event.worker.size, *h.shape))
        own = x if self._is_of_everyone(problem, event) else _of_workers(x, event)
        return None, own, h, {}

    def _stored(
        self,
        problem: VerticalProblem,
        state: BlockDescentState,
        event: Event,
        initial: Float[Array, "W ..."],
    ) -> tuple[TableStore, Float[Array, "W S F"], Float[Array, "W M C S"], Info]:
        """Uploads outputs for the parties' own batches; returns all that is stored."""
        assert state.store is not None
        samples, parties = _samples(event), _parties(problem)
        of = parties.uploads(initial, event.worker, event.job, samples)
        store = state.store.write(parties, of, event.version)
        h = store.read(parties, samples)
        ages = age_info(store.ages(samples, event.version), event.worker, samples)
        return store, rows(problem, of), h, ages

    def _descend(
        self,
        problem: VerticalProblem,
        initial: Block,
        received: Received,
        step_size: Float[Array, ""],
        moments: Moments,
        made: Int[Array, " W"],
    ) -> tuple[Block, Block, Moments]:
        """Makes the local steps."""

        def gradient(block: Lone, start: Lone, received: Received) -> Lone:
            weights, *server = block
            own, pull = jax.vjp(
                lambda w: problem.embedding.apply(w, received.x), weights
            )
            error, *to_server = _errors(problem, own, received, *server)
            if self.frozen:
                error = jnp.where(received.labelled, error, received.error)
            found = (pull(error)[0] + problem.l2 * weights, *to_server)
            if self.proximal is not None:
                found = jax.tree.map(
                    lambda slope, now, then: slope + self.proximal * (now - then),
                    *(found, block, start),
                )
            return found

        of_all = jax.vmap(gradient)

        def moved_by(
            block: Block, slopes: Block, moments: Moments, made: Array
        ) -> tuple[Block, Moments]:
            if (rule := self.optimizer) is not None:
                assert moments is not None
                parts = zip(slopes, moments, block, _arrays(problem), strict=True)
                directed = [
                    jax.vmap(partial(rule.update, arrays=arrays))(g, own, w, made)
                    for g, own, w, arrays in parts
                ]
                slopes, moments = zip(*directed, strict=True)
            moved = jax.tree.map(lambda w, slope: w - step_size * slope, block, slopes)
            return moved, moments

        def once(
            q: Int[Array, ""], now: tuple[Block, Moments]
        ) -> tuple[Block, Moments]:
            block, moments = now
            return moved_by(block, of_all(block, initial, received), moments, made + q)

        first = of_all(initial, initial, received)
        now = moved_by(initial, first, moments, made)
        if self.local_steps > 1:
            now = jax.lax.fori_loop(1, self.local_steps, once, now)
        moved, moments = now
        return moved, first, moments


def _parties(problem: VerticalProblem) -> Parties:
    """Returns the parties, whose uploads have no noise, and so no key of it."""
    return Parties(problem, jax.random.key(0), None)


def _samples(event: Event) -> Int[Array, "W S"]:
    return jnp.broadcast_to(event.samples, (event.worker.size, event.samples.shape[1]))


def _of_workers(parties: Float[Array, "M ..."], event: Event) -> Float[Array, "W ..."]:
    return parties.at[event.worker].get(mode="fill", fill_value=0)


def _received(
    problem: VerticalProblem,
    event: Event,
    x: Float[Array, "W S F"],
    h: Float[Array, "W M D S"],
    server: Float[Array, " P0"] | None,
) -> tuple[Float[Array, " W"], Received]:
    """Returns the loss of each party's batch, and what it has for its local steps."""
    worker, M, samples = event.worker, problem.num_parties, _samples(event)
    own = jnp.arange(M)[None] == worker[:, None]
    y = problem.y.at[samples].get(mode="fill", fill_value=0)
    present = samples != NO_SAMPLE
    labelled = worker == M - 1
    if server is not None:
        of_network = jax.value_and_grad(partial(_loss_at, problem))
        loss, errors = jax.vmap(of_network, (0, None, 0, 0))(h, server, y, present)
        error = jnp.where(own[:, :, None, None], errors, 0).sum(axis=1)
        return loss, Received(x, y, present, h, error, labelled, worker)
    others = jnp.where(own[:, :, None, None], 0, h).sum(axis=1)
    of_sum = jax.vmap(jax.value_and_grad(problem.batch_loss))
    loss, error = of_sum(h.sum(axis=1), y, present)
    return loss, Received(x, y, present, others, error, labelled, worker)


def _errors(
    problem: VerticalProblem,
    own: Float[Array, "D S"],
    received: Received,
    server: Float[Array, " P0"] | None = None,
) -> tuple[Array, ...]:
    """Returns the derivatives of the loss by a party's outputs and by the network.

    The other parties' outputs are as they were received, and so is the network at a
    party without labels.
    """
    y, present = received.y, received.present
    if server is None:
        return (jax.grad(problem.batch_loss)(own + received.others, y, present),)
    h = received.others.at[received.party].set(own, mode="drop")
    of_network = jax.grad(partial(_loss_at, problem), argnums=(0, 1))
    errors, to_server = of_network(h, server, y, present)
    error = errors.at[received.party].get(mode="fill", fill_value=0)
    return error, jnp.where(received.labelled, to_server, 0)


def _loss_at(
    problem: VerticalProblem,
    h: Float[Array, "M D S"],
    server: Float[Array, " P0"],
    y: Num[Array, " S *T"],
    present: Bool[Array, " S"],
) -> Float[Array, ""]:
    """Returns a batch's loss at all outputs and a network over them."""
    return problem.batch_loss(problem.head(server, h), y, present)


def _copies(
    server: Float[Array, " P0"] | None, count: int
) -> tuple[Float[Array, "W P0"], ...]:
    """Returns the network's weights for each party of a row, if there is one."""
    return () if server is None else (jnp.broadcast_to(server, (count, server.size)),)


def _arrays(problem: VerticalProblem) -> list[ModelArrays]:
    of_server = () if problem.server is None else (arrays_of_server(problem),)
    return [arrays_of_party(problem), *of_server]


def build(
    config: BlockDescent, setup: RunSetup, constants: Constants
) -> BlockDescentKernel | TransferDescent:
    """Builds the algorithm of a scenario."""
    steps = getattr(config, "local_steps", 1)
    proximal = getattr(config, "proximal", None)
    # Without it the plain program runs, bit for bit that of FedBCD.
    pull = jnp.asarray(proximal, float) if proximal else None
    step_size, _ = resolve(config.step_size, constants)
    if setup.scenario.problem.transfer is not None:
        return TransferDescent(on_device(step_size), pull, steps)
    bound = float("nan")
    smoothness = measured(constants.smoothness)
    of_parties = measured(constants.of_parties)
    if smoothness is not None and of_parties:
        bound = largest_step(steps, of_parties, smoothness)
    return BlockDescentKernel(
        step_size=on_device(step_size),
        proximal=pull,
        step_bound=jnp.asarray(bound, float),
        optimizer=rule_of(config.optimizer),
        local_steps=steps,
        frozen=getattr(config, "local_gradient", "recompute") == "frozen",
        stored=not setup.coordinated,
    )
