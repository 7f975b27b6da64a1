"""FedSGD and FedBCD: block coordinate descent with local steps between exchanges.

Source: Liu, Kang, Zhang, Li, Cheng, Chen, Hong and Yang, *A Communication-Efficient
Collaborative Learning Framework for Distributed Features*; decisions (F-) are in
docs/decisions.md.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from simulator.algorithms.base import Event, Info, Kernel, broadcast_flags, norm
from simulator.algorithms.step_rules import Schedule, Steps
from simulator.algorithms.vafl.ages import age_info
from simulator.algorithms.vafl.stores import TableStore, Upload, rows
from simulator.problems import losses
from simulator.problems.vertical import Model, VerticalProblem
from simulator.timeline import NO_SAMPLE


class BlockDescentState(NamedTuple):
    """The parties' models and, asynchronously, what the server has stored.

    Attributes:
        weights: each party's own model.
        store: outputs as they were uploaded; None in rounds, where all are fresh.
    """

    weights: Float[Array, "M ..."]
    store: TableStore | None


class Received(NamedTuple):
    """The parties' view of their batch during their local steps.

    Attributes:
        x: their own features.
        y: labels.
        present: Whether each sample is no padding.
        others: the sum of the other parties' outputs.
        error: derivative of the batch's loss by the summed outputs, at the exchange.
        labelled: whether they hold the labels: the last party does.
    """

    x: Float[Array, "*W S F"]
    y: Int[Array, "*W S"]
    present: Bool[Array, "*W S"]
    others: Float[Array, "*W C S"]
    error: Float[Array, "*W C S"]
    labelled: Bool[Array, "*W"]


class BlockDescentKernel(Kernel):
    """A row is an exchange and the local steps of its parties.

    Attributes:
        step_size: Step size of the local steps, constant within a row (F-05).
        proximal: mu of the pull towards the model of the exchange (F-14); None without.
        step_bound: largest step size that Theorem 2's proof allows, NaN if unknown.
        local_steps: Q.
        frozen: whether parties without labels keep the derivative that they received
            (F-01).
        stored: whether the others' outputs are as they were last uploaded, and each
            party has a batch of its own.
    """

    step_size: Schedule | Steps
    proximal: Float[Array, ""] | None
    step_bound: Float[Array, ""]
    local_steps: int = eqx.field(static=True)
    frozen: bool = eqx.field(static=True)
    stored: bool = eqx.field(static=True)

    def init(self, problem: VerticalProblem, key: Key[Array, ""]) -> BlockDescentState:
        """Starts all models, and fills the store with what they make of all samples."""
        weights = problem.start(key)
        store = None
        if self.stored:
            store = TableStore.fill(problem, weights, None, key, per_sample=True)
        return BlockDescentState(weights, store)

    def step(
        self, problem: VerticalProblem, state: BlockDescentState, event: Event
    ) -> tuple[BlockDescentState, Info]:
        """Applies one COMMIT: an exchange, then local steps of the row's parties."""
        everyone = self._is_of_everyone(problem, event)
        initial = state.weights if everyone else _of_workers(state.weights, event)
        exchange = self._stored if self.stored else self._fresh
        store, x, h, info = exchange(problem, state, event, initial)
        loss, received = _received(problem, event, x, h)
        num_rounds = event.version * event.worker.size // problem.num_parties
        step_size = self.step_size.at(num_rounds)
        moved, gradient = self._descend(problem, initial, received, step_size)
        here = broadcast_flags(event.present(), initial)
        share = event.present() / jnp.maximum(event.present().sum(), 1)
        info = {
            "loss": share.astype(loss.dtype) @ loss,
            "gradient_norm": norm(jnp.where(here, gradient, 0)),
            "step_size": step_size,
            "step_bound": self.step_bound,
            "moved_norm": norm(jnp.where(here, moved - initial, 0)),
            **info,
        }
        if everyone:
            weights = jnp.where(here, moved, initial)
        else:
            weights = state.weights.at[event.worker].set(moved, mode="drop")
        return BlockDescentState(weights, store), info

    def read_out(self, state: BlockDescentState) -> Model:
        """Returns the parties' weights; the server has no model."""
        return state.weights, None

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
        del initial
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
        samples = _samples(event)
        upload = Upload(
            worker=event.worker,
            job=event.job,
            samples=samples,
            weights=initial,
            std=jnp.zeros(event.worker.size, initial.dtype),
            version=event.version,
        )
        # There is no noise, and so no key of it.
        key = jax.random.key(0)
        store = state.store.write(problem, key, None, upload)
        h = store.read(problem, key, None, samples)
        ages = age_info(store.ages(samples, event.version), event.worker, samples)
        return store, rows(problem, event.worker, samples), h, ages

    def _descend(
        self,
        problem: VerticalProblem,
        initial: Float[Array, "W ..."],
        received: Received,
        step_size: Float[Array, ""],
    ) -> tuple[Float[Array, "W ..."], Float[Array, "W ..."]]:
        """Makes the local steps; returns where they lead, and the first gradient."""

        def gradient(
            weights: Array, start: Array, received: Received
        ) -> Float[Array, "*P"]:
            own, pull = jax.vjp(
                lambda w: problem.embedding.apply(w, received.x), weights
            )
            _, error = _loss_and_error(
                problem, own + received.others, received.y, received.present
            )
            if self.frozen:
                error = jnp.where(received.labelled, error, received.error)
            found = pull(error)[0] + problem.l2 * weights
            if self.proximal is not None:
                found = found + self.proximal * (weights - start)
            return found

        of_all = jax.vmap(gradient)

        def once(_: Int[Array, ""], weights: Array) -> Array:
            return weights - step_size * of_all(weights, initial, received)

        first = of_all(initial, initial, received)
        moved = initial - step_size * first
        if self.local_steps > 1:
            moved = jax.lax.fori_loop(1, self.local_steps, once, moved)
        return moved, first


def _samples(event: Event) -> Int[Array, "W S"]:
    """Returns the samples of each worker, also where all have the same."""
    return jnp.broadcast_to(event.samples, (event.worker.size, event.samples.shape[1]))


def _of_workers(parties: Float[Array, "M ..."], event: Event) -> Float[Array, "W ..."]:
    """Returns what belongs to a row's workers; zeros for padding."""
    return parties.at[event.worker].get(mode="fill", fill_value=0)


def _received(
    problem: VerticalProblem,
    event: Event,
    x: Float[Array, "W S F"],
    h: Float[Array, "W M C S"],
) -> tuple[Float[Array, " W"], Received]:
    """Returns the loss of each party's batch, and what it has for its local steps."""
    worker, M, samples = event.worker, problem.num_parties, _samples(event)
    own = jnp.arange(M)[None] == worker[:, None]
    others = jnp.where(own[:, :, None, None], 0, h).sum(axis=1)
    y = problem.y.at[samples].get(mode="fill", fill_value=0)
    present = samples != NO_SAMPLE
    loss, error = jax.vmap(lambda *batch: _loss_and_error(problem, *batch))(
        h.sum(axis=1), y, present
    )
    return loss, Received(x, y, present, others, error, labelled=worker == M - 1)


def _loss_and_error(
    problem: VerticalProblem,
    logits: Float[Array, "C S"],
    y: Int[Array, " S"],
    present: Bool[Array, " S"],
) -> tuple[Float[Array, ""], Float[Array, "C S"]]:
    """Returns a batch's loss and its derivative by the summed outputs."""

    def loss(logits: Array) -> Float[Array, ""]:
        each = losses.per_sample(problem.loss, logits, y)
        return losses.reduce(problem.reduction, each, present)

    return jax.value_and_grad(loss)(logits)
