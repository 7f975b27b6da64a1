"""VAFL: vertical asynchronous federated learning, and its synchronous baseline.

Source: Chen, Jin, Sun and Yin, *VAFL: a Method of Vertical Asynchronous Federated
Learning*; decisions (V-) are in evidence/pages/decisions.md.
"""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from ...learning import losses
from ...learning.vertical import Model, VerticalProblem
from ...metrics import Models, metric
from ...timeline import NO_SAMPLE, Kind
from ..base import Event, Info, Kernel, broadcast_flags, norm, norms_of
from ..optimizers import rule as optimizing
from ..optimizers.base import UpdateRule
from ..step_rules import Schedule, Steps
from . import steps
from .noise import Draw, EmbeddingNoise
from .steps import Exchange, pull
from .stores import SnapshotStore, TableStore, Upload, age_info, embed, rows


class VaflState(NamedTuple):
    """The parties' models, the server's, and what the server has stored.

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
    moments: Any = None
    server_moments: Any = None


class VaflKernel(Kernel):
    """One row is an upload, a query, and the update of a party and of the server.

    The table is filled by every party at time zero (V-09), the active party's own
    embedding is fresh (V-07), and its Jacobian uses the noise of its upload (V-17),
    which has no effect on it where the noise is on linear outputs alone.

    Attributes:
        step_size: Step size of the parties.
        server_step_size: Step size of the server's model.
        noise: Noise of every upload; None without perturbation.
        optimizer: Optimiser of each party and of the server; None for plain SGD.
        coordinated: whether one common batch is embedded freshly by all parties.
        upload_all: whether a party uploads the embeddings of all samples (V-05).
        snapshots: whether the server's store of all samples keeps models, not a table.
        current: whether nothing stored is stale: before every row all parties'
            models are stored again.
        query_first: whether a party queries its last batch and updates before it
            uploads the next (V-06).
        after: whether a query is answered at the updated server (V-08). With
            `query_first` the query comes before the update either way.
        bound: age above which a REFRESH replaces a stored embedding (V-10).
        batch: samples of a job.
    """

    step_size: Schedule | Steps
    server_step_size: Schedule | Steps
    noise: EmbeddingNoise | None
    optimizer: UpdateRule | None
    coordinated: bool = eqx.field(static=True)
    upload_all: bool = eqx.field(static=True)
    snapshots: bool = eqx.field(static=True)
    current: bool = eqx.field(static=True)
    query_first: bool = eqx.field(static=True)
    after: bool = eqx.field(static=True)
    bound: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)

    def init(self, problem: VerticalProblem, key: Key[Array, ""]) -> VaflState:
        """Starts all models at their start and fills the store, ages 1 at version 0."""
        M = problem.num_parties
        weights = problem.start(key)
        store = queried = None
        if not self.coordinated:
            kind = SnapshotStore if self.snapshots else TableStore
            per_sample = not self.upload_all
            store = kind.fill(problem, weights, self.noise, key, per_sample=per_sample)
        if self.query_first:
            queried = jnp.full((M, self.batch), NO_SAMPLE, jnp.int32)
        server = problem.start_server(key)
        moments = steps.start(self.optimizer, problem, weights, server)
        return VaflState(weights, server, store, queried, key, *moments)

    def step(
        self, problem: VerticalProblem, state: VaflState, event: Event
    ) -> tuple[VaflState, Info]:
        if self.coordinated:
            return self._step_coordinated(problem, state, event)
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
        exchange = self._query_first if self.query_first else self._upload_first
        done = exchange(problem, state, event, samples, weights)

        moved, moments = self._moved(problem, state, event, weights, done.to_weights)
        share = (present / jnp.maximum(present.sum(), 1)).astype(weights.dtype)
        info = {
            "loss": jnp.sum(share * done.loss),
            "gradient_norm": norm(
                done.to_server,
                jnp.where(broadcast_flags(present, weights), done.to_weights, 0),
            ),
            "step_size": self._step_size(event),
            **age_info(done.ages, worker, done.of_samples),
            **self._noise_info(weights, 0, width),
        }
        state = VaflState(
            weights=state.weights.at[worker].set(moved, mode="drop"),
            server=done.server,
            store=done.store,
            queried=done.queried,
            key=state.key,
            moments=optimizing.written(state.moments, worker, moments),
            server_moments=done.server_moments,
        )
        return state, info

    def _upload_first(
        self,
        problem: VerticalProblem,
        state: VaflState,
        event: Event,
        samples: Int[Array, "W S"],
        weights: Float[Array, "W ..."],
    ) -> Exchange:
        """Uploads, updates the server, answers the query."""
        store = self._write(problem, state, event, samples, weights)
        h = store.read(problem, state.key, self.noise, samples)
        loss, to_server, to_h = self._gradients(problem, state.server, h, samples)
        to_server = self._server_gradient(to_server, event)
        server, moments = self._server_moved(problem, state, event, to_server)
        if self.after:
            loss, _, to_h = self._gradients(problem, server, h, samples)
        uploaded = Draw(event.worker, event.job, samples, self._std(weights))
        to_weights = self._pull_back(problem, state.key, weights, uploaded, to_h)
        ages = store.ages(samples, event.version)
        return Exchange(
            *(loss, to_server, to_weights, ages, samples, server, moments, store),
            state.queried,
        )

    def _query_first(
        self,
        problem: VerticalProblem,
        state: VaflState,
        event: Event,
        samples: Int[Array, "W S"],
        weights: Float[Array, "W ..."],
    ) -> Exchange:
        """Answers a query for the last batch, then takes the upload of the next one.

        A party's first query is for the batch that it then uploads, since at the start
        it uploaded all samples.
        """
        assert state.queried is not None
        assert state.store is not None
        worker, key = event.worker, state.key
        last = state.queried.at[worker].get(mode="fill", fill_value=NO_SAMPLE)
        asked = jnp.where(last == NO_SAMPLE, samples, last)
        h = state.store.read(problem, key, self.noise, asked)
        loss, _, to_h = self._gradients(problem, state.server, h, asked)
        # Here noise is on the outputs alone, and plays no part in their derivative.
        uploaded = Draw(worker, event.job, asked, self._std(weights))
        to_weights = self._pull_back(problem, key, weights, uploaded, to_h)
        moved, _ = self._moved(problem, state, event, weights, to_weights)
        store = self._write(problem, state, event, samples, moved)
        h = store.read(problem, key, self.noise, samples)
        _, to_server, _ = self._gradients(problem, state.server, h, samples)
        to_server = self._server_gradient(to_server, event)
        server, moments = self._server_moved(problem, state, event, to_server)
        ages = state.store.ages(asked, event.version)
        queried = state.queried.at[worker].set(samples, mode="drop")
        return Exchange(
            *(loss, to_server, to_weights, ages, asked, server, moments, store),
            queried,
        )

    def _refresh(
        self, problem: VerticalProblem, state: VaflState, event: Event
    ) -> tuple[VaflState, Info]:
        """Lets the named parties upload again what is older than the bound (V-10)."""
        assert state.store is not None
        parties = event.worker[1:]
        samples = jnp.broadcast_to(event.samples[0], (parties.size, self.batch))
        weights = state.weights.at[parties].get(mode="fill", fill_value=0)
        ages = state.store.ages(samples[:1], event.version)[:, 0]
        age = ages.at[parties].get(mode="fill", fill_value=0)
        event = event._replace(worker=parties, job=event.job[1:])
        late = jnp.where(age > self.bound, samples, NO_SAMPLE)
        store = self._write(problem, state, event, late, weights)
        _, info = jax.eval_shape(lambda *row: self._commit(*row), problem, state, event)
        nothing = {
            name: jnp.zeros(like.shape, like.dtype) for name, like in info.items()
        }
        nothing |= self._noise_info(weights, 1, parties.size + 1)
        return state._replace(store=store), nothing

    def _step_coordinated(
        self, problem: VerticalProblem, state: VaflState, event: Event
    ) -> tuple[VaflState, Info]:
        """Moves all blocks by one common batch, freshly embedded (section 4)."""
        M = problem.num_parties
        present = event.present().any()
        samples = jnp.broadcast_to(event.samples[:1], (M, self.batch))
        upload = Upload(
            worker=jnp.arange(M),
            job=jnp.broadcast_to(event.job[0], (M,)),
            samples=samples,
            weights=state.weights,
            std=self._std(state.weights),
            version=event.version,
        )
        h = embed(problem, state.key, self.noise, upload)
        loss, to_server, to_h = self._gradients(
            problem, state.server, h[None], samples[:1]
        )
        x = rows(problem, upload.worker, samples)
        uploaded = Draw(upload.worker, upload.job, samples, upload.std)
        of_party = partial(pull, problem, state.key, self.noise)
        to_weights = jax.vmap(of_party)(state.weights, x, uploaded, to_h[0])
        to_weights += problem.l2 * state.weights
        step_size = self.step_size.at(event.version)
        server_step = self.server_step_size.at(event.version)
        if self.optimizer is None:
            weights = state.weights - jnp.where(present, step_size, 0) * to_weights
            server = state.server - jnp.where(present, server_step, 0) * to_server[0]
            moved = state._replace(weights=weights, server=server)
        else:
            everyone = event._replace(worker=upload.worker, job=upload.job)
            ends = self._moved(problem, state, everyone, state.weights, to_weights)
            of_server = self._server_moved(problem, state, event, to_server[0])
            moved = state._replace(
                weights=ends[0],
                moments=ends[1],
                server=of_server[0],
                server_moments=of_server[1],
            )
            moved = optimizing.kept(present, moved, state)
        info = {
            "loss": loss[0],
            "gradient_norm": norm(to_server[0], to_weights),
            "step_size": self._step_size(event),
            **self._noise_info(state.weights, 0, M),
        }
        return moved, info

    def _step_size(self, event: Event) -> Float[Array, ""]:
        """Returns the step size of a row's first party, as it is reported."""
        step_size = self.step_size.at(event.version)
        if self.optimizer is None:
            return step_size
        return self.optimizer.scaled(step_size, event.job[0])

    def _moved(
        self,
        problem: VerticalProblem,
        state: VaflState,
        event: Event,
        weights: Float[Array, "W ..."],
        to_weights: Float[Array, "W ..."],
    ) -> tuple[Float[Array, "W ..."], Any]:
        """Returns the models of a row's parties and their optimisers' states."""
        own = optimizing.of_workers(state.moments, event.worker)
        step_size = self.step_size.at(event.version)
        return steps.moved(
            *(self.optimizer, problem, step_size, weights, to_weights, own, event.job)
        )

    def _server_moved(
        self,
        problem: VerticalProblem,
        state: VaflState,
        event: Event,
        to_server: Float[Array, " P0"],
    ) -> tuple[Float[Array, " P0"], Any]:
        """Returns the server's model and its optimiser's state."""
        step_size = self.server_step_size.at(event.version)
        return steps.server_moved(
            *(self.optimizer, problem, step_size, state.server, to_server),
            *(state.server_moments, event),
        )

    def _gradients(
        self,
        problem: VerticalProblem,
        server: Float[Array, " P0"],
        h: Float[Array, "W M D S"],
        samples: Int[Array, "W S"],
    ) -> tuple[Float[Array, " W"], Float[Array, "W P0"], Float[Array, "W M D S"]]:
        """Returns each batch's loss, its gradients in server's model and embeddings."""
        y = problem.y.at[samples].get(mode="fill", fill_value=0)
        present = samples != NO_SAMPLE

        def loss(server, h, y, present):
            each = losses.per_sample(problem.loss, problem.head(server, h), y)
            return losses.reduce(problem.reduction, each, present)

        of_batch = jax.value_and_grad(loss, argnums=(0, 1))
        value, (to_server, to_h) = jax.vmap(of_batch, in_axes=(None, 0, 0, 0))(
            server, h, y, present
        )
        return value, to_server, to_h

    def _server_gradient(
        self, to_server: Float[Array, "W P0"], event: Event
    ) -> Float[Array, " P0"]:
        """Returns the mean over the row's workers; zero of a NULL row (appendix D)."""
        present = event.present()
        share = present / jnp.maximum(present.sum(), 1)
        return share.astype(to_server.dtype) @ to_server

    def _pull_back(
        self,
        problem: VerticalProblem,
        key: Key[Array, ""],
        weights: Float[Array, "W ..."],
        of: Draw,
        to_h: Float[Array, "W M D S"],
    ) -> Float[Array, "W ..."]:
        """Returns the gradients of the parties' own weights, regularised."""
        worker = of.worker
        own = to_h.at[jnp.arange(worker.size), worker].get(mode="fill", fill_value=0)
        x = rows(problem, worker, of.samples)
        pulled = jax.vmap(partial(pull, problem, key, self.noise))(weights, x, of, own)
        return pulled + problem.l2 * weights

    def _write(
        self,
        problem: VerticalProblem,
        state: VaflState,
        event: Event,
        samples: Int[Array, "W S"],
        weights: Float[Array, "W ..."],
    ) -> TableStore | SnapshotStore:
        assert state.store is not None
        store = state.store
        if self.current:
            assert isinstance(store, SnapshotStore)
            store = store._replace(
                weights=state.weights,
                std=self._std(state.weights),
                stamp=jnp.full_like(store.stamp, event.version),
            )
        upload = Upload(
            worker=event.worker,
            job=event.job,
            samples=samples,
            weights=weights,
            std=self._std(weights),
            version=event.version,
        )
        return store.write(problem, state.key, self.noise, upload)

    def _std(self, weights: Float[Array, "W ..."]) -> Float[Array, " W"]:
        if self.noise is None:
            return jnp.zeros(weights.shape[0], weights.dtype)
        return self.noise.std(weights)

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
