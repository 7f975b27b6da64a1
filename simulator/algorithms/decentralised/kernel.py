"""Decentralised SGD: PSGD in its forms, A(DP)2SGD and stochastic gradient push."""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from ...data.images import image_shape
from ...learning.augmenting import augmented
from ...learning.constants import Constants
from ...learning.horizontal import HorizontalProblem
from ...metrics import Models, metric
from ...privacy import gossip_noise
from ...setup import RunSetup
from ...timeline import NO_SLOT, Kind
from .. import client_work
from ..base import Event, Info, Probeable, norm, on_device
from ..client_work import Augment, Work
from ..optimizers import rule as optimizing
from ..optimizers.arrays import arrays_of_rows
from ..optimizers.base import UpdateRule
from ..optimizers.rule import rule_of
from ..step_rules import Schedule, Steps, resolve
from .part import Adp2sgd, Augmentation
from .part import Decentralised as Config


class DecentralisedState(NamedTuple):
    """All workers' models, and what their jobs under way have read.

    Attributes:
        models: Model of every worker, of any shape; in push-sum the numerators.
        registers: The model that every worker's job has read.
        centre: mean of what workers would read.
        spread: sum of squared distances from it.
        ages: steps in each model; None where models merge by their mean.
        shares: push-sum weights; None without push-sum.
        key: Key of the noise, of random changes of images and of what training draws;
            None without any.
        moments: state of every worker's optimizer, each array `[K, ...]`; None without.
    """

    models: Float[Array, "K ..."]
    registers: Float[Array, "K ..."]
    centre: Float[Array, "..."]
    spread: Float[Array, ""]
    ages: Int[Array, " K"] | None
    shares: Float[Array, " K"] | None
    key: Key[Array, ""] | None
    moments: Any = None


class _Near(NamedTuple):
    """The change of a row, and its inputs.

    Attributes:
        models: Models of its workers.
        read: Model that the first of them has read.
        centre: Mean of all models, as in `DecentralisedState`.
        spread: Spread of all models, as in `DecentralisedState`.
        moments: state of the first worker's optimizer; None without any.
    """

    models: Float[Array, "w ..."]
    read: Float[Array, "..."]
    centre: Float[Array, "..."]
    spread: Float[Array, ""]
    moments: Any


class Noising(eqx.Module):
    """Noise on a mean gradient, of samples' gradients that are clipped or not.

    Attributes:
        std: Standard deviation of a coordinate of the mean gradient.
        bound: G, that samples' gradients are clipped to; None where they are not.
    """

    std: Float[Array, ""]
    bound: Float[Array, ""] | None


class Augmenting(NamedTuple):
    """Random changes of images.

    Attributes:
        config: Its options.
        image: Height, width and depth of an image, pixels.
    """

    config: Augmentation
    image: tuple[int, int, int]


class DecentralisedSgd(Probeable):
    """Every worker steps its own model; averagings mix them.

    Attributes:
        step_size: Step size of a mean gradient.
        noising: Noise on the gradients; None without any.
        mixing: matrices of averagings of everyone, in turn; None where models are
            averaged in pairs.
        by_age: whether pairs merge by their ages.
        pushes: whether models are shared out as in push-sum.
        num_workers: `K`.
        optimizer: each worker's own; None for plain SGD.
        augmenting: Changes of a batch's images; None without any.
    """

    step_size: Schedule | Steps
    noising: Noising | None
    mixing: Float[Array, "Q K K"] | None
    by_age: bool = eqx.field(static=True)
    pushes: bool = eqx.field(static=True)
    num_workers: int = eqx.field(static=True)
    optimizer: UpdateRule | None = None
    augmenting: Augmenting | None = eqx.field(static=True, default=None)

    @property
    def per_worker_models(self) -> bool:
        """Every worker has."""
        return True

    def init(
        self, problem: HorizontalProblem, key: Key[Array, ""]
    ) -> DecentralisedState:
        """Starts all workers at one model."""
        weights = problem.start(key)
        models = jnp.tile(weights, (self.num_workers, *(1,) * weights.ndim))
        K = self.num_workers
        keyed = self.noising is not None or self.augmenting is not None
        keyed = keyed or problem.takes_key
        moments = None
        if self.optimizer is not None:
            start = self.optimizer.init(weights, arrays_of_rows(problem))
            moments = optimizing.table(start, K)
        return DecentralisedState(
            models=models,
            registers=jnp.array(models),
            centre=weights,
            spread=jnp.zeros((), weights.dtype),
            ages=jnp.zeros(K, jnp.int32) if self.by_age else None,
            shares=jnp.ones(K, weights.dtype) if self.pushes else None,
            key=key if keyed else None,
            moments=moments,
        )

    def step(
        self, problem: HorizontalProblem, state: DecentralisedState, event: Event
    ) -> tuple[DecentralisedState, Info]:
        """Steps a worker's model (COMMIT), or mixes models (AVERAGE, AVERAGE_ALL).

        All that is as large as a model is done within one branch, whose inputs and
        outputs are arrays of their own: fused with the gather, XLA would gather again
        for every use.
        """
        commits, pairs = event.kind == Kind.COMMIT, event.kind == Kind.AVERAGE
        made = event.version
        if self.mixing is not None:  # all steps of a round are of one size
            made = made // self.num_workers * self.num_workers
        step_size = self.step_size.at(made)
        old = state.models.at[event.worker].get(mode="fill", fill_value=0)
        read = state.registers.at[event.worker[0]].get(mode="fill", fill_value=0)
        moments = optimizing.of_workers(state.moments, event.worker[0])
        near = _Near(old, read, state.centre, state.spread, moments)

        def of_commit(near: _Near) -> tuple[_Near, Info]:
            work = self._work(problem, state, near.read, event)
            direction, moments = work.message, near.moments
            reported = step_size
            if self.optimizer is not None:
                job = event.job[0]
                reported = self.optimizer.scaled(step_size, job)
                direction, moments = self.optimizer.update(
                    *(direction, moments, near.models[0], job),
                    arrays_of_rows(problem),
                )
            near = near._replace(moments=moments)
            moved = _moved(problem, near.models[0], step_size, direction, work)
            after = self._after(state, near, moved[None], event.worker[:1])
            info = {
                "loss": work.loss,
                "gradient_norm": norm(work.message),
                "step_size": reported.astype(work.loss.dtype),
                **work.info,
            }
            return after, info

        _, shapes = jax.eval_shape(of_commit, near)

        def of_average(near: _Near) -> tuple[_Near, Info]:
            unknown = jax.tree.map(
                lambda s: jnp.full(s.shape, jnp.nan, s.dtype), shapes
            )
            if state.ages is None:
                return _halved(near), unknown
            share = self._share(state, event).astype(near.models.dtype)
            merged = share * near.models[0] + (1 - share) * near.models[1]
            both = jnp.where(pairs, jnp.stack([merged, merged]), near.models)
            return self._after(state, near, both, event.worker), unknown

        near, info = jax.lax.cond(commits, of_commit, of_average, near)
        models = state.models.at[event.worker].set(near.models, mode="drop")
        slots = jnp.where(pairs, event.read_slot, NO_SLOT)
        slots = slots.at[0].set(jnp.where(commits, event.worker[0], slots[0]))
        seen = self._seen(state, near.models, event.worker)
        state = state._replace(
            models=models,
            registers=state.registers.at[slots].set(seen, mode="drop"),
            centre=near.centre,
            spread=near.spread,
            ages=self._aged(state, event),
            moments=optimizing.written(state.moments, event.worker[0], near.moments),
        )
        if self.mixing is not None:
            state = self._mixed(state, event, self.mixing)
        distance = state.spread / self.num_workers
        return state, {**info, "consensus_distance": distance}

    def refreshed(self, state: DecentralisedState) -> DecentralisedState:
        """Measures the spread again, before rounding adds up.

        Not in a row: a branch that may do so would copy all models in every row.
        """
        centre, spread = _exact(self._held(state))
        return state._replace(centre=centre, spread=spread)

    def read_out(self, state: DecentralisedState) -> Float[Array, "..."]:
        """Returns the average of all models (A-14)."""
        return state.models.mean(axis=0)

    def evaluate(
        self,
        problem: HorizontalProblem,
        state: DecentralisedState,
        metrics: tuple[str, ...],
    ) -> dict[str, Array]:
        """Returns metrics of the average model, and of the workers' own ones."""
        of: dict[Models, tuple[str, ...]] = {
            models: tuple(name for name in metrics if metric(name).models is models)
            for models in Models
        }
        found = problem.evaluate(self.read_out(state), of[Models.READ_OUT])
        for name in of[Models.ALL_WORKERS]:
            found[name] = metric(name).function()(problem, self._held(state))
        if each := of[Models.EACH_WORKER]:
            found |= jax.lax.map(
                lambda model: problem.evaluate(model, each), self._held(state)
            )
        return found

    def reveal(
        self, problem: HorizontalProblem, state: DecentralisedState, event: Event
    ) -> dict[str, Array]:
        """Returns a step's noisy gradient, the gradient in it, and where from."""
        read = state.registers.at[event.worker[0]].get(mode="fill", fill_value=0)
        work = self._work(problem, state, read, event)
        values = {"message": work.message, "gradient": work.gradient, "state": read}
        return {
            name: jnp.stack([value, jnp.zeros_like(value)])
            for name, value in values.items()
        }

    def _work(
        self,
        problem: HorizontalProblem,
        state: DecentralisedState,
        read: Float[Array, "..."],
        event: Event,
    ) -> Work:
        """Returns what a worker computes at its snapshot."""
        samples, noising = event.samples[0], self.noising
        augment = self._augment(state, event)
        drawn = client_work.training_key(
            problem, state.key, event.worker[0], event.job[0]
        )
        if noising is None:
            return client_work.at_once(problem, read, samples, augment, drawn)
        size = read.size - problem.model.num_statistics
        noised = size if size < read.size else None
        if noising.bound is None:
            work = client_work.at_once(problem, read, samples, augment, drawn)
        else:
            work = client_work.clipped_per_sample(
                problem, read, samples, noising.bound, noised, augment, drawn
            )
        assert state.key is not None
        key = jax.random.fold_in(state.key, event.worker[0])
        key = jax.random.fold_in(key, event.job[0])
        return client_work.noised(work, "gaussian", key, noising.std, noised)

    def _augment(self, state: DecentralisedState, event: Event) -> Augment | None:
        """Returns the change of a job's images, by a key of its own.

        Noise is drawn by the keys of workers 0 to K - 1; these are those from K on.
        """
        if self.augmenting is None:
            return None
        (config, image), key = self.augmenting, state.key
        assert key is not None
        key = jax.random.fold_in(key, self.num_workers + event.worker[0])
        key = jax.random.fold_in(key, event.job[0])
        return partial(augmented, key, image=image, crop=config.crop, flip=config.flip)

    def _share(self, state: DecentralisedState, event: Event) -> Float[Array, ""]:
        """Returns the weight of the first of two models that merge."""
        if state.ages is None:
            return jnp.asarray(0.5)
        own = state.ages.at[event.worker].get(mode="fill", fill_value=0)
        total = own.sum()
        return jnp.where(total > 0, own[0] / jnp.maximum(total, 1), 0.5)

    def _aged(self, state: DecentralisedState, event: Event) -> Int[Array, " K"] | None:
        """Returns the ages after a row."""
        if state.ages is None:
            return None
        own = state.ages.at[event.worker].get(mode="fill", fill_value=0)
        after = jnp.where(event.kind == Kind.AVERAGE, own.max(), own + 1)
        return state.ages.at[event.worker].set(after, mode="drop")

    def _after(
        self,
        state: DecentralisedState,
        near: "_Near",
        models: Float[Array, "w ..."],
        workers: Int[Array, " w"],
    ) -> "_Near":
        """Replaces a row's models, and keeps centre and spread up to date.

        What stands where there is no second worker is written nowhere.
        """
        old = self._seen(state, near.models[: models.shape[0]], workers)
        drift = self._seen(state, models, workers) - old
        # A reduction over so short an axis takes XLA forty times as long on CPU.
        total = drift[0] if len(models) == 1 else drift[0] + drift[1]
        spread = (
            near.spread + 2 * _dot(old - near.centre[None], drift) + _dot(drift, drift)
        )
        spread -= _dot(total, total) / self.num_workers
        return near._replace(
            models=models if len(models) == 2 else jnp.stack([models[0], models[0]]),
            centre=near.centre + total / self.num_workers,
            spread=jnp.maximum(spread, 0),
        )

    def _seen(
        self,
        state: DecentralisedState,
        models: Float[Array, "w ..."],
        workers: Int[Array, " w"],
    ) -> Float[Array, "w ..."]:
        """Returns what the workers of a row would read of their models."""
        if state.shares is None:
            return models
        shares = state.shares.at[workers].get(mode="fill", fill_value=1)
        return models / shares.reshape(-1, *(1,) * (models.ndim - 1))

    def _held(self, state: DecentralisedState) -> Float[Array, "K ..."]:
        """Returns what all workers would read."""
        if state.shares is None:
            return state.models
        return state.models / state.shares.reshape(-1, *(1,) * (state.models.ndim - 1))

    def _mixed(
        self, state: DecentralisedState, event: Event, mixing: Float[Array, "Q K K"]
    ) -> DecentralisedState:
        """Mixes all models where a row says so.

        A loop of one or no turn keeps the models where they are, which a branch would
        copy in every row.
        """
        everyone = event.kind == Kind.AVERAGE_ALL
        # Before the steps of round r there have been r K of them, or all of its own.
        ended = event.read_slot[0] != NO_SLOT
        made = event.version // self.num_workers - ended
        matrix = mixing[made % mixing.shape[0]]

        def mix(_: Array, state: DecentralisedState) -> DecentralisedState:
            flat = state.models.reshape(self.num_workers, -1)
            models = (matrix.astype(flat.dtype) @ flat).reshape(state.models.shape)
            shares = None if state.shares is None else matrix @ state.shares
            state = state._replace(models=models, shares=shares)
            held = self._held(state)
            registers = jnp.where(ended, held, state.registers)
            centre, spread = _exact(held)
            return state._replace(registers=registers, centre=centre, spread=spread)

        return jax.lax.fori_loop(0, everyone.astype(jnp.int32), mix, state)


def _halved(near: _Near) -> _Near:
    """Gives two models their mean; their distance from it is what the spread loses."""
    apart = near.models[0] - near.models[1]
    merged = 0.5 * (near.models[0] + near.models[1])
    spread = jnp.maximum(near.spread - 0.5 * _dot(apart, apart), 0)
    return near._replace(models=jnp.stack([merged, merged]), spread=spread)


def consensus_distance(
    problem: HorizontalProblem, models: Float[Array, "K ..."]
) -> Float[Array, ""]:
    """Returns the mean squared distance of workers' models from their mean."""
    del problem
    return _exact(models)[1] / len(models)


def _exact(held: Float[Array, "K ..."]) -> tuple[Array, Array]:
    """Returns the mean of some models, and the sum of squared distances from it."""
    centre = held.mean(axis=0)
    apart = held - centre[None]
    return centre, _dot(apart, apart)


def _dot(a: Float[Array, "..."], b: Float[Array, "..."]) -> Float[Array, ""]:
    """Returns the sum of products."""
    return jnp.vdot(a, b)


def _moved(
    problem: HorizontalProblem,
    model: Float[Array, "..."],
    step_size: Float[Array, ""],
    direction: Float[Array, "..."],
    work: Work,
) -> Float[Array, "..."]:
    """Returns a model after a step; running statistics follow those of the batch."""
    moved = model - (step_size * direction).astype(model.dtype)
    count = problem.model.num_statistics
    if not count:
        return moved
    assert work.statistics is not None  # the model has some
    kept = client_work.running(model[-count:], work.statistics)
    return jnp.concatenate([moved[:-count], kept])


def build(config: Config, setup: RunSetup, constants: Constants) -> DecentralisedSgd:
    """Builds the algorithm of a scenario."""
    step_size, _ = resolve(config.step_size, constants)
    noising = None
    if isinstance(config, Adp2sgd):
        noise = config.noise
        sigma = gossip_noise.sigma_of(
            noise, setup.shares.num_samples, setup.shape.batch
        )
        noising = Noising(
            std=jnp.asarray(sigma / noise.per_mean(setup.shape.batch), float),
            bound=jnp.asarray(noise.bound, float) if noise.clip == "sample" else None,
        )
    augmentation = getattr(config, "augmentation", None)
    augmenting = None
    if augmentation is not None:
        chosen = getattr(setup.scenario.problem.model, "image", None)
        shape = image_shape(setup.shape.num_features, chosen)
        augmenting = Augmenting(augmentation, shape)
    mixing = setup.mixing
    return DecentralisedSgd(
        step_size=on_device(step_size),
        noising=noising,
        mixing=None if mixing is None else jnp.asarray(mixing, float),
        by_age=getattr(config, "merge", "mean") == "age",
        pushes=config.pushes,
        num_workers=setup.shape.num_clients,
        optimizer=rule_of(getattr(config, "optimizer", None)),
        augmenting=augmenting,
    )
