"""VAFL: vertical asynchronous federated learning, and its synchronous baseline.

Source: Chen, Jin, Sun and Yin, *VAFL: a Method of Vertical Asynchronous Federated
Learning*; decisions (V-) are in evidence/pages/decisions.md.
"""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from ....engine.kernel import (
    Event,
    Info,
    Kernel,
    broadcast_flags,
    norm,
    norms_of,
    on_device,
)
from ....engine.optimizers import rule as optimizing
from ....engine.optimizers.arrays import UpdateRule, arrays_of_party, arrays_of_server
from ....engine.optimizers.rule import rule_of
from ....engine.setup import RunSetup
from ....engine.step_rules import Schedule, Steps, resolve
from ....files.timeline import NO_SAMPLE, Kind
from ....parts.metrics import Models, metric
from ....problem.constants import Constants
from ....problem.vertical import Model, VerticalProblem
from ....world.protocol_abilities import RefreshesEmbeddings
from .noise import Draw, EmbeddingNoise, noise_of
from .part import Vafl
from .stores import Parties, SnapshotStore, TableStore, age_info


class VaflState(NamedTuple):
    """The parties' models, the server's, and the server's stored embeddings.

    Attributes:
        weights: each party's own model.
        server: the server's model: biases (V-13), or the weights of its network.
        store: embeddings as they were uploaded; None where everything is fresh.
        queried: each party's batch of its last activation (`query_first` only).
        key: Key of all noise.
        moments: State of each party's optimiser, each array `[M, ...]`; None without.
        server_moments: State of the server's.
    """

    weights: Float[Array, "M ..."]
    server: Float[Array, " P0"]
    store: TableStore | SnapshotStore | None
    queried: Int[Array, "M S"] | None
    key: Key[Array, ""]
    moments: object = None
    server_moments: object = None


Exchange = tuple[
    Float[Array, " W"],
    Float[Array, " P0"],
    Float[Array, "W ..."],
    Int[Array, "M W S"],
    Int[Array, "W S"],
]
"""The result of a meeting of parties and server, without the state after it: the loss
of each party's batch, gradients of the server's model and of the parties' models, and
of the embeddings that the latter used the ages, in commits, and the samples."""


class VaflKernel(Kernel[VerticalProblem, VaflState]):
    """One row is an upload, a query, and the update of a party and of the server.

    The table is filled by every party at time zero (V-09), the active party's own
    embedding is fresh (V-07), and its Jacobian uses the noise of its upload (V-17),
    which has no effect on it where the noise is on linear outputs alone.

    Attributes:
        step_size: Step size of the parties.
        server_step_size: Step size of the server's model.
        noise: Noise of every upload; None without perturbation.
        optimizer: Optimiser of each party and of the server; None for plain SGD.
        upload_all: Whether a party uploads the embeddings of all samples (V-05); then
            the server's store keeps models, not a table.
        current: Whether nothing stored is stale: before every row all parties'
            models are stored again.
        after: Whether a query is answered at the updated server (V-08). With
            `query_first` the query comes before the update either way.
        bound: Age above which a REFRESH replaces a stored embedding (V-10).
        batch: Samples of a job.
    """

    step_size: Schedule | Steps
    server_step_size: Schedule | Steps
    noise: EmbeddingNoise | None
    optimizer: UpdateRule | None
    upload_all: bool = eqx.field(static=True)
    current: bool = eqx.field(static=True)
    after: bool = eqx.field(static=True)
    bound: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)

    def init(self, problem: VerticalProblem, key: Key[Array, ""]) -> VaflState:
        """Starts all models at their start and fills the store, ages 1 at version 0."""
        weights, server = problem.start(key), problem.start_server(key)
        moments = server_moments = None
        if self.optimizer is not None:
            start = partial(self.optimizer.init, arrays=arrays_of_party(problem))
            moments = jax.vmap(start)(weights)
            server_moments = self.optimizer.init(server, arrays_of_server(problem))
        store = self.filled(Parties(problem, key, self.noise), weights)
        return VaflState(weights, server, store, None, key, moments, server_moments)

    def filled(
        self, parties: Parties, weights: Float[Array, "M ..."]
    ) -> TableStore | SnapshotStore | None:
        """Returns the server's store at the start."""
        kind = SnapshotStore if self.upload_all else TableStore
        return kind.fill(parties, weights)

    def step(
        self, problem: VerticalProblem, state: VaflState, event: Event
    ) -> tuple[VaflState, Info]:
        if self.bound:
            return jax.lax.cond(
                event.kind == Kind.REFRESH,
                lambda *row: self._refresh(*row),
                lambda *row: self._commit(*row),
                *(problem, state, event),
            )
        return self._commit(problem, state, event)

    def read_out(self, state: VaflState) -> Model:
        return state.weights, state.server

    def evaluate(
        self, problem: VerticalProblem, state: VaflState, metrics: tuple[str, ...]
    ) -> dict[str, Array]:
        noisy = [n for n in metrics if metric(n).models is Models.PERTURBED]
        rest = tuple(name for name in metrics if name not in noisy)
        model = self.read_out(state)
        found = problem.evaluate(model, rest)
        for name in noisy:
            assert self.noise is not None
            found[name] = metric(name).function()(problem, model, self.noise, state.key)
        return found

    def exchange(
        self,
        parties: Parties,
        state: VaflState,
        event: Event,
        of: Draw,
    ) -> tuple[VaflState, Exchange]:
        """Uploads, updates the server, answers the query."""
        problem, samples = parties.problem, of.samples
        store = self._stored(parties, state, of, event.version)
        h = store.read(parties, samples)
        loss, to_server, to_h = _gradients(problem, state.server, h, samples)
        to_server = _mean(to_server, event)
        after = self._served(problem, state, event, to_server)._replace(store=store)
        if self.after:
            loss, _, to_h = _gradients(problem, after.server, h, samples)
        to_weights = parties.pull(of, _own(to_h, of.worker))
        ages = store.ages(samples, event.version)
        return after, (loss, to_server, to_weights, ages, samples)

    def _commit(
        self, problem: VerticalProblem, state: VaflState, event: Event
    ) -> tuple[VaflState, Info]:
        width = event.worker.shape[0]
        if self.bound:  # rows are as wide as a REFRESH, but one party takes part
            event = event._replace(worker=event.worker[:1], job=event.job[:1])
        worker, present = event.worker, event.present()
        W = worker.shape[0]
        samples = jnp.broadcast_to(event.samples[:W], (W, self.batch))
        weights = state.weights.at[worker].get(mode="fill", fill_value=0)
        parties = Parties(problem, state.key, self.noise)
        of = parties.uploads(weights, worker, event.job, samples)
        after, exchange = self.exchange(parties, state, event, of)
        loss, to_server, to_weights, ages, used = exchange
        moved, moments = self._moved(problem, state, event, weights, to_weights)
        share = (present / jnp.maximum(present.sum(), 1)).astype(weights.dtype)
        info = {
            "loss": jnp.sum(share * loss),
            "gradient_norm": norm(
                to_server,
                jnp.where(broadcast_flags(present, weights), to_weights, 0),
            ),
            "step_size": self._step_size(event),
            **age_info(ages, worker, used),
            **self._noise_info(weights, 0, width),
        }
        return after._replace(
            weights=state.weights.at[worker].set(moved, mode="drop"),
            moments=optimizing.written(state.moments, worker, moments),
        ), info

    def _refresh(
        self, problem: VerticalProblem, state: VaflState, event: Event
    ) -> tuple[VaflState, Info]:
        """Lets the named parties upload again what is older than the bound (V-10)."""
        assert state.store is not None
        _, info = jax.eval_shape(self._commit, problem, state, event)
        worker = event.worker[1:]
        samples = jnp.broadcast_to(event.samples[0], (worker.size, self.batch))
        weights = state.weights.at[worker].get(mode="fill", fill_value=0)
        ages = state.store.ages(samples[:1], event.version)[:, 0]
        age = ages.at[worker].get(mode="fill", fill_value=0)
        late = jnp.where(age > self.bound, samples, NO_SAMPLE)
        parties = Parties(problem, state.key, self.noise)
        of = parties.uploads(weights, worker, event.job[1:], late)
        store = self._stored(parties, state, of, event.version)
        nothing = {
            name: jnp.zeros(like.shape, like.dtype) for name, like in info.items()
        }
        nothing |= self._noise_info(weights, 1, worker.size + 1)
        return state._replace(store=store), nothing

    def _stored(
        self, parties: Parties, state: VaflState, of: Draw, version: Int[Array, ""]
    ) -> TableStore | SnapshotStore:
        store = state.store
        assert store is not None
        if self.current:
            assert isinstance(store, SnapshotStore)
            store = store._replace(
                weights=state.weights,
                std=parties.std(state.weights),
                stamp=jnp.full_like(store.stamp, version),
            )
        return store.write(parties, of, version)

    def _moved(
        self,
        problem: VerticalProblem,
        state: VaflState,
        event: Event,
        weights: Float[Array, "W ..."],
        to_weights: Float[Array, "W ..."],
    ) -> tuple[Float[Array, "W ..."], object]:
        """Returns the models of a row's parties and their optimisers' states."""
        own = optimizing.of_workers(state.moments, event.worker)
        if self.optimizer is not None:
            update = partial(self.optimizer.update, arrays=arrays_of_party(problem))
            to_weights, own = jax.vmap(update)(to_weights, own, weights, event.job)
        return weights - self.step_size.at(event.version) * to_weights, own

    def _served(
        self,
        problem: VerticalProblem,
        state: VaflState,
        event: Event,
        to_server: Float[Array, " P0"],
    ) -> VaflState:
        """Returns the state after a step of the server, of gradient 0 in a NULL row."""
        step_size, server = self.server_step_size.at(event.version), state.server
        if self.optimizer is None:
            return state._replace(server=server - step_size * to_server)
        direction, moments = self.optimizer.update(
            *(to_server, state.server_moments, server, event.version),
            arrays_of_server(problem),
        )
        new = (server - step_size * direction, moments)
        old = (server, state.server_moments)
        server, moments = optimizing.kept(event.present().any(), new, old)
        return state._replace(server=server, server_moments=moments)

    def _step_size(self, event: Event) -> Float[Array, ""]:
        """Returns the step size of a row's first party, as it is reported."""
        step_size = self.step_size.at(event.version)
        if self.optimizer is None:
            return step_size
        return self.optimizer.scaled(step_size, event.job[0])

    def _noise_info(
        self, weights: Float[Array, "U ..."], first: int, width: int
    ) -> Info:
        """Returns the noise of uploads, in a row's columns from `first` on."""
        if self.noise is None:
            return {}
        norms = norms_of(weights)
        columns = (first, width - first - norms.size)
        return {
            "workers/noise_std": jnp.pad(self.noise.std(weights), columns),
            "workers/weight_norm": jnp.pad(norms, columns),
        }


class QueryFirst(VaflKernel):
    """A party queries its last batch and updates before it uploads the next (V-06)."""

    def init(self, problem: VerticalProblem, key: Key[Array, ""]) -> VaflState:
        shape = (problem.num_parties, self.batch)
        queried = jnp.full(shape, NO_SAMPLE, jnp.int32)
        return super().init(problem, key)._replace(queried=queried)

    def exchange(
        self,
        parties: Parties,
        state: VaflState,
        event: Event,
        of: Draw,
    ) -> tuple[VaflState, Exchange]:
        """Answers a query for the last batch, then takes the upload of the next one.

        A party's first query is for the batch that it then uploads, since at the start
        it uploaded all samples.
        """
        assert state.queried is not None
        assert state.store is not None
        problem, worker, samples = parties.problem, of.worker, of.samples
        last = state.queried.at[worker].get(mode="fill", fill_value=NO_SAMPLE)
        asked = jnp.where(last == NO_SAMPLE, samples, last)
        h = state.store.read(parties, asked)
        loss, _, to_h = _gradients(problem, state.server, h, asked)
        # Here noise is on the outputs alone, and plays no part in their derivative.
        before = of._replace(samples=asked)
        to_weights = parties.pull(before, _own(to_h, worker))
        moved, _ = self._moved(problem, state, event, of.weights, to_weights)
        of = parties.uploads(moved, worker, of.job, samples)
        store = self._stored(parties, state, of, event.version)
        h = store.read(parties, samples)
        _, to_server, _ = _gradients(problem, state.server, h, samples)
        to_server = _mean(to_server, event)
        after = self._served(problem, state, event, to_server)
        ages = state.store.ages(asked, event.version)
        queried = state.queried.at[worker].set(samples, mode="drop")
        after = after._replace(store=store, queried=queried)
        return after, (loss, to_server, to_weights, ages, asked)


class Coordinated(VaflKernel):
    """Moves all blocks by one common batch, freshly embedded (section 4)."""

    def filled(self, parties: Parties, weights: Float[Array, "M ..."]) -> None:
        return None

    def step(
        self, problem: VerticalProblem, state: VaflState, event: Event
    ) -> tuple[VaflState, Info]:
        M, weights = problem.num_parties, state.weights
        samples = jnp.broadcast_to(event.samples[:1], (M, self.batch))
        job = jnp.broadcast_to(event.job[0], (M,))
        everyone = event._replace(worker=jnp.arange(M), job=job)
        parties = Parties(problem, state.key, self.noise)
        of = parties.uploads(weights, everyone.worker, job, samples)
        h = parties.embed(of)[None]
        loss, to_server, to_h = _gradients(problem, state.server, h, samples[:1])
        to_weights = parties.pull(of, to_h[0])
        moved, moments = self._moved(problem, state, everyone, weights, to_weights)
        after = self._served(problem, state, event, to_server[0])
        after = after._replace(weights=moved, moments=moments)
        info = {
            "loss": loss[0],
            "gradient_norm": norm(to_server[0], to_weights),
            "step_size": self._step_size(event),
            **self._noise_info(weights, 0, M),
        }
        return optimizing.kept(event.present().any(), after, state), info


def _gradients(
    problem: VerticalProblem,
    server: Float[Array, " P0"],
    h: Float[Array, "W M D S"],
    samples: Int[Array, "W S"],
) -> tuple[Float[Array, " W"], Float[Array, "W P0"], Float[Array, "W M D S"]]:
    """Returns each batch's loss, its gradients in server's model and embeddings."""
    y = problem.y.at[samples].get(mode="fill", fill_value=0)

    def loss(server, h, y, present):
        return problem.batch_loss(problem.head(server, h), y, present)

    of_batch = jax.vmap(jax.value_and_grad(loss, argnums=(0, 1)), (None, 0, 0, 0))
    value, (to_server, to_h) = of_batch(server, h, y, samples != NO_SAMPLE)
    return value, to_server, to_h


def _mean(to_server: Float[Array, "W P0"], event: Event) -> Float[Array, " P0"]:
    """Returns the mean over the row's workers; zero of a NULL row (appendix D)."""
    present = event.present()
    share = present / jnp.maximum(present.sum(), 1)
    return share.astype(to_server.dtype) @ to_server


def _own(
    to_h: Float[Array, "W M D S"], worker: Int[Array, " W"]
) -> Float[Array, "W D S"]:
    """Returns the part of a gradient that is by each party's own embeddings."""
    return to_h.at[jnp.arange(worker.size), worker].get(mode="fill", fill_value=0)


def build(config: Vafl, setup: RunSetup, constants: Constants) -> VaflKernel:
    """Builds the algorithm of a scenario."""
    client, server = resolve(config.step_size, constants)
    if config.server_step_size is not None:
        _, server = resolve(config.server_step_size, constants)
    layers = setup.scenario.problem.model.num_layers or 1
    protocol = setup.timeline.protocol
    refreshes = isinstance(protocol, RefreshesEmbeddings)
    kernel = QueryFirst if config.client_order == "query_first" else VaflKernel
    if setup.coordinated:
        kernel = Coordinated
    return kernel(
        step_size=on_device(client),
        server_step_size=on_device(server),
        noise=noise_of(config.perturbation, setup.upload_ratio, layers - 1),
        optimizer=rule_of(config.optimizer),
        upload_all=config.upload != "batch",
        current=config.upload == "current",
        after=config.server_gradient == "after",
        bound=protocol.refresh_bound if refreshes else 0,
        batch=setup.shape.batch,
    )
