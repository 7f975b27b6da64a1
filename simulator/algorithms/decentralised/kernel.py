"""Decentralised SGD: PSGD in its forms, A(DP)2SGD and stochastic gradient push."""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from ...config.errors import ScenarioError
from ...data.images import image_shape
from ...learning.augmenting import augmented
from ...learning.constants import Constants
from ...learning.horizontal import HorizontalProblem
from ...metrics import Models, metric
from ...privacy import gossip_noise
from ...setup import RunSetup
from ...timeline import NO_SLOT, NO_WORKER, Kind
from .. import client_work
from ..base import Event, Info, Probeable, norm, on_device, summed
from ..client_work import Augment, Work
from ..optimizers import rule as optimizing
from ..optimizers.arrays import arrays_of_rows
from ..optimizers.base import UpdateRule
from ..optimizers.rule import rule_of
from ..step_rules import Schedule, Steps, resolve
from .part import Adp2sgd, Augmentation
from .part import Decentralised as Config

DISTANCE = "consensus_distance"
"""Name of the diagnostic, and of the metric."""

MOST_KEPT = 500
"""Workers that may keep each other's models: 163 million weights of softmax on digits,
and 0.7 GB."""


class Spread(NamedTuple):
    """How far apart workers' models are, as they would read them.

    Attributes:
        centre: Their mean.
        total: Sum of squared distances from it.
    """

    centre: Float[Array, "..."]
    total: Float[Array, ""]


class LastModels(NamedTuple):
    """Neighbours' models as each worker has last received them.

    Attributes:
        models: by receiver and sender.
        known: whether there is one.
    """

    models: Float[Array, "K K ..."]
    known: Bool[Array, "K K"]


class DecentralisedState(NamedTuple):
    """All workers' models, and what their jobs under way have read.

    Attributes:
        models: Model of every worker, of any shape; in push-sum the numerators.
        registers: The model that every worker's job has read; then `num_messages` for
            models on their way.
        spread: Of all models; None where rows do not have the consensus distance.
        ages: steps in each model, and in those on their way; None where models do not
            merge by their ages.
        shares: push-sum weights; None without push-sum.
        key: Key of the noise, of random changes of images and of what training draws;
            None without any.
        moments: state of every worker's optimizer, each array `[K, ...]`; None without.
        received: Neighbours' models, where workers merge with all of them.
    """

    models: Float[Array, "K ..."]
    registers: Float[Array, "R ..."]
    spread: Spread | None
    ages: Int[Array, " R"] | None
    shares: Float[Array, " K"] | None
    key: Key[Array, ""] | None
    moments: Any = None
    received: LastModels | None = None


class _Change(NamedTuple):
    """What a row changes.

    Attributes:
        model: Of its workers after it, of two one for both.
        spread: Of all models, as in `DecentralisedState`.
        moments: state of the first worker's optimizer; None without any.
        info: diagnostics.
        arrived: The model that has arrived, where workers keep it.
    """

    model: Float[Array, "..."]
    spread: Spread | None
    moments: Any
    info: Info
    arrived: Float[Array, "..."] | None = None


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
        by_age: whether two models merge by their ages.
        forgets: whether a model that arrives takes the place of the worker's own.
        keeps: whether a worker keeps its neighbours' models, and merges with all.
        num_messages: `M`, registers of models on their way; None where models are
            not pushed one way.
        pushes: whether models are shared out as in push-sum.
        num_workers: `K`.
        measured: Whether every row has the consensus distance, which takes a quarter of
            the time of a network's run.
        optimizer: each worker's own; None for plain SGD.
        augmenting: Changes of a batch's images; None without any.
    """

    step_size: Schedule | Steps
    noising: Noising | None
    mixing: Float[Array, "Q K K"] | None
    by_age: bool = eqx.field(static=True)
    pushes: bool = eqx.field(static=True)
    num_workers: int = eqx.field(static=True)
    measured: bool = eqx.field(static=True)
    optimizer: UpdateRule | None = None
    augmenting: Augmenting | None = eqx.field(static=True, default=None)
    forgets: bool = eqx.field(static=True, default=False)
    keeps: bool = eqx.field(static=True, default=False)
    num_messages: int | None = eqx.field(static=True, default=None)

    @property
    def per_worker_models(self) -> bool:
        return True

    def init(
        self, problem: HorizontalProblem, key: Key[Array, ""]
    ) -> DecentralisedState:
        weights = problem.start(key)
        models = jnp.tile(weights, (self.num_workers, *(1,) * weights.ndim))
        K, M = self.num_workers, self.num_messages or 0
        on_way = jnp.zeros((M, *weights.shape), weights.dtype)
        keyed = self.noising is not None or self.augmenting is not None
        keyed = keyed or problem.takes_key
        moments = None
        if self.optimizer is not None:
            start = self.optimizer.init(weights, arrays_of_rows(problem))
            moments = optimizing.table(start, K)
        return DecentralisedState(
            models=models,
            registers=jnp.concatenate([models, on_way]),
            spread=Spread(weights, jnp.zeros((), weights.dtype))
            if self.measured
            else None,
            ages=jnp.zeros(K + M, jnp.int32) if self.by_age else None,
            shares=jnp.ones(K, weights.dtype) if self.pushes else None,
            key=key if keyed else None,
            moments=moments,
            received=self._nothing(weights) if self.keeps else None,
        )

    def _nothing(self, weights: Float[Array, "..."]) -> LastModels:
        pairs = (self.num_workers, self.num_workers)
        models = jnp.zeros((*pairs, *weights.shape), weights.dtype)
        return LastModels(models, jnp.zeros(pairs, bool))

    def step(
        self, problem: HorizontalProblem, state: DecentralisedState, event: Event
    ) -> tuple[DecentralisedState, Info]:
        """Steps a worker's model (COMMIT), or mixes models (AVERAGE, AVERAGE_ALL).

        A model that is pushed is written into a message (SEND), and that is merged into
        the receiver's model (MERGE).

        All that is read is read within one branch, and what is written is one model
        that comes out of it: so XLA writes in place, row by row of the table. A model
        that is not an output of a branch would be calculated again wherever it is
        written, from the models before it, of which XLA would keep a copy.
        """
        commits, pairs = event.kind == Kind.COMMIT, event.kind == Kind.AVERAGE
        first = event.worker[0]
        commit = partial(self._commit, problem, state, event)
        shapes = jax.eval_shape(commit)

        def same() -> _Change:
            blank = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
            info = jax.tree.map(lambda zero: zero + jnp.nan, blank.info)
            return blank._replace(spread=state.spread, info=info)

        def average() -> _Change:
            return self._average(state, event, same())

        branch = jnp.where(commits, 0, jnp.where(pairs, 1, 2))
        branches, written = [commit, average, same], event.worker
        slots = jnp.where(pairs, event.read_slot, NO_SLOT)
        slots = slots.at[0].set(jnp.where(commits, first, slots[0]))
        if self.num_messages is not None:

            def send() -> _Change:
                return same()._replace(model=state.models[event.worker[1]])

            def merge() -> _Change:
                return self._merge(state, event, same())

            sends, merges = event.kind == Kind.SEND, event.kind == Kind.MERGE
            branch = jnp.where(sends, 3, jnp.where(merges, 4, branch))
            branches += [send, merge]
            none = jnp.full_like(written, NO_WORKER)
            written = jnp.where(sends, none, written)
            written = jnp.where(merges, none.at[0].set(first), written)
            slots = jnp.where(sends, event.read_slot, slots)
            slots = jnp.where(merges, none.at[0].set(event.read_slot[0]), slots)
        change = jax.lax.switch(branch, branches)
        moved = jnp.where(commits, first, NO_WORKER)
        seen = self._seen(state, change.model, first)
        state = state._replace(
            models=_put(state.models, written, change.model),
            registers=_put(state.registers, slots, seen),
            spread=change.spread,
            ages=self._aged(state, event),
            moments=optimizing.written(state.moments, moved, change.moments),
            received=_kept(state.received, event, change.arrived),
        )
        if self.mixing is not None:
            state = self._mixed(state, event, self.mixing)
        if state.spread is None:
            return state, change.info
        distance = state.spread.total / self.num_workers
        if state.shares is not None:
            apart = state.spread.centre - self.read_out(state)
            distance += jnp.vdot(apart, apart)
        return state, {**change.info, DISTANCE: distance}

    def refreshed(self, state: DecentralisedState) -> DecentralisedState:
        """Measures the spread again, before rounding adds up.

        Not in a row: a branch that may do so would copy all models in every row.
        """
        if state.spread is None:
            return state
        return state._replace(spread=_exact(self._held(state)))

    def read_out(self, state: DecentralisedState) -> Float[Array, "..."]:
        return state.models.mean(axis=0)

    def evaluate(
        self,
        problem: HorizontalProblem,
        state: DecentralisedState,
        metrics: tuple[str, ...],
    ) -> dict[str, Array]:
        of: dict[Models, tuple[str, ...]] = {
            models: tuple(name for name in metrics if metric(name).models is models)
            for models in Models
        }
        found = problem.evaluate(self.read_out(state), of[Models.READ_OUT])
        for name in of[Models.ALL_WORKERS]:
            compute = metric(name).function()
            found[name] = compute(problem, self._held(state), self.read_out(state))
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

    def _commit(
        self, problem: HorizontalProblem, state: DecentralisedState, event: Event
    ) -> _Change:
        """Steps the model of a row's worker."""
        worker, made = event.worker[0], event.version
        if self.mixing is not None:  # all steps of a round are of one size
            made = made // self.num_workers * self.num_workers
        step_size = reported = self.step_size.at(made)
        old = state.models[worker]
        moments = optimizing.of_workers(state.moments, worker)
        work = self._work(problem, state, state.registers[worker], event)
        direction = work.message
        if self.optimizer is not None:
            job = event.job[0]
            reported = self.optimizer.scaled(step_size, job)
            direction, moments = self.optimizer.update(
                direction, moments, old, job, arrays_of_rows(problem)
            )
        moved = _moved(problem, old, step_size, direction, work)
        info = {
            "loss": work.loss,
            "gradient_norm": norm(work.message),
            "step_size": reported.astype(work.loss.dtype),
            **work.info,
        }
        spread = state.spread
        if spread is not None:
            was, now = (self._seen(state, model, worker) for model in (old, moved))
            spread = self._spread(spread, was, now)
        arrived = jnp.zeros_like(moved) if self.keeps else None
        return _Change(moved, spread, moments, info, arrived)

    def _spread(
        self, spread: Spread, was: Float[Array, "..."], now: Float[Array, "..."]
    ) -> Spread:
        """Returns the spread after one of the models has moved."""
        share = 1 / self.num_workers
        centre = spread.centre + (now - was) * share

        def gained(was: Array, now: Array, centre: Array) -> Array:
            drift = now - was
            return (2 * (was - centre) + (1 + share) * drift) * drift

        total = spread.total + summed(gained, was, now, centre)
        return Spread(centre, jnp.maximum(total, 0))

    def _merge(self, state: DecentralisedState, event: Event, kept: _Change) -> _Change:
        """Merges the model that arrives with the receiver's own."""
        own, arrived = (
            state.models[event.worker[0]],
            state.registers[event.read_slot[1]],
        )
        if state.received is not None:
            receiver, sender = event.worker
            models = state.received.models[receiver].at[sender].set(arrived)
            known = state.received.known[receiver].at[sender].set(True)
            total = jnp.tensordot(known.astype(own.dtype), models, 1)
            merged = (own + total) / (1 + known.sum())
            kept = kept._replace(arrived=arrived)
        else:
            share = self._share(state, event).astype(own.dtype)
            merged = share * own + (1 - share) * arrived
        spread = state.spread
        if spread is not None:
            spread = self._spread(spread, own, merged)
        return kept._replace(model=merged, spread=spread)

    def _average(
        self, state: DecentralisedState, event: Event, kept: _Change
    ) -> _Change:
        """Merges the models of a row's two workers."""
        one, other = (state.models[event.worker[place]] for place in (0, 1))
        spread = state.spread
        if state.ages is None:
            if spread is not None:  # it loses their distance from their mean
                lost = 0.5 * summed(lambda a, b: jnp.square(a - b), one, other)
                spread = spread._replace(total=jnp.maximum(spread.total - lost, 0))
            return kept._replace(model=0.5 * (one + other), spread=spread)
        share = self._share(state, event).astype(one.dtype)
        merged = share * one + (1 - share) * other
        if spread is not None:
            part = 1 / self.num_workers

            def gained(one: Array, other: Array, merged: Array, mean: Array) -> Array:
                drifts = merged - one, merged - other
                of_each = 2 * (one - mean) + drifts[0], 2 * (other - mean) + drifts[1]
                total = drifts[0] + drifts[1]
                moved = of_each[0] * drifts[0] + of_each[1] * drifts[1]
                return moved - part * total**2

            total = spread.total + summed(gained, one, other, merged, spread.centre)
            centre = spread.centre + (2 * merged - one - other) * part
            spread = Spread(centre, jnp.maximum(total, 0))
        return kept._replace(model=merged, spread=spread)

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
            return jnp.asarray(0.0 if self.forgets else 0.5)
        own = self._ages(state.ages, event)
        total = own.sum()
        return jnp.where(total > 0, own[0] / jnp.maximum(total, 1), 0.5)

    def _aged(self, state: DecentralisedState, event: Event) -> Int[Array, " R"] | None:
        """Returns the ages after a row."""
        if state.ages is None:
            return None
        own = self._ages(state.ages, event)
        after = jnp.where(event.kind == Kind.AVERAGE, own.max(), own + 1)
        into = event.worker
        if self.num_messages is not None:
            sends, merges = event.kind == Kind.SEND, event.kind == Kind.MERGE
            after = jnp.where(sends, own, jnp.where(merges, own.max(), after))
            into = jnp.where(sends, event.read_slot, into)
            into = into.at[1].set(jnp.where(merges, NO_WORKER, into[1]))
        return state.ages.at[into].set(after, mode="drop")

    def _ages(self, ages: Int[Array, " R"], event: Event) -> Int[Array, " W"]:
        """Returns the ages of the models that a row is about."""
        where = event.worker
        if self.num_messages is not None:
            merged = jnp.where(event.kind == Kind.MERGE, event.read_slot[1], where[1])
            where = where.at[1].set(merged)
        return ages.at[where].get(mode="fill", fill_value=0)

    def _seen(
        self, state: DecentralisedState, model: Float[Array, "..."], worker: Array
    ) -> Float[Array, "..."]:
        """Returns what a worker would read of its model."""
        return model if state.shares is None else model / state.shares[worker]

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
            spread = None if state.spread is None else _exact(held)
            return state._replace(registers=registers, spread=spread)

        return jax.lax.fori_loop(0, everyone.astype(jnp.int32), mix, state)


def _put(
    table: Float[Array, "K ..."], rows: Int[Array, " w"], model: Float[Array, "..."]
) -> Float[Array, "K ..."]:
    """Writes one model to some rows of a table in place; those behind it are none."""
    for row in rows:
        table = table.at[row].set(model, mode="drop")
    return table


def _kept(
    received: LastModels | None, event: Event, arrived: Float[Array, "..."] | None
) -> LastModels | None:
    """Returns what workers keep of their neighbours after a row."""
    if received is None:
        return None
    merges = event.kind == Kind.MERGE
    at = jnp.where(merges, event.worker[0], NO_WORKER), event.worker[1]
    return LastModels(
        models=received.models.at[at].set(arrived, mode="drop"),
        known=received.known.at[at].set(True, mode="drop"),
    )


def consensus_distance(
    problem: HorizontalProblem,
    models: Float[Array, "K ..."],
    average: Float[Array, "..."],
) -> Float[Array, ""]:
    """Returns the mean squared distance of workers' models from the average model.

    In push-sum that is the mean of the numerators, and not of the models.
    """
    apart = models - average[None]
    return jnp.vdot(apart, apart) / len(models)


def _exact(held: Float[Array, "K ..."]) -> Spread:
    """Returns the spread of some models, as they are."""
    centre = held.mean(axis=0)
    apart = held - centre[None]
    return Spread(centre, jnp.vdot(apart, apart))


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
    mixing, K = setup.mixing, setup.shape.num_clients
    keeps = getattr(config, "merge", "mean") == "cached"
    if keeps and K > MOST_KEPT:
        raise ScenarioError(
            f"algorithm.merge must be mean, age or replace with more than {MOST_KEPT} "
            f"workers, got 'cached' with {K:,}, each with as many models; change it"
        )
    one_way = setup.scenario.protocol.average == "push"
    return DecentralisedSgd(
        step_size=on_device(step_size),
        noising=noising,
        mixing=None if mixing is None else jnp.asarray(mixing, float),
        by_age=getattr(config, "merge", "mean") == "age",
        pushes=config.pushes,
        num_workers=K,
        measured=_measured(setup),
        optimizer=rule_of(getattr(config, "optimizer", None)),
        augmenting=augmenting,
        forgets=getattr(config, "merge", "mean") == "replace",
        keeps=keeps,
        num_messages=setup.timeline.num_registers - K if one_way else None,
    )


def _measured(setup: RunSetup) -> bool:
    """Says whether a scenario looks at the consensus distance."""
    window = setup.scenario.stop.windowed
    asked = setup.scenario.evaluate.metrics
    return DISTANCE in asked or (window is not None and window.column == DISTANCE)
