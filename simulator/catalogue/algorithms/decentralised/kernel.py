"""What decentralised methods share: workers' models, their steps and their mixing."""

from collections.abc import Callable
from functools import partial
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from ....engine import client_work
from ....engine.kernel import Event, Info, Probeable, norm
from ....engine.optimizers import rule as optimizing
from ....engine.optimizers.arrays import UpdateRule, arrays_of_rows
from ....engine.step_rules import Schedule, Steps
from ....files.timeline import NO_SLOT, NO_WORKER, Kind
from ....parts.metrics import Models, metric
from ....problem.horizontal import HorizontalProblem
from .merging import DISTANCE, Merging, Model, Spread, Table, spread_of


class GossipState(NamedTuple):
    """All workers' models, and what their jobs under way have read.

    Attributes:
        models: Model of every worker, of any shape; in push-sum the numerators.
        registers: The model that every worker's job has read, then those on their way.
        spread: Of all models; None where rows do not have the consensus distance.
        memory: What merging keeps.
        key: Random key of noise, image augmentation and training.
        moments: State of every worker's optimiser, each array `[K, ...]`; None without.
        shares: Push-sum weights; None without push-sum.
    """

    models: Float[Array, "K ..."]
    registers: Float[Array, "R ..."]
    spread: Spread | None
    memory: object
    key: Key[Array, ""]
    moments: object
    shares: Float[Array, " K"] | None = None


class _Change(NamedTuple):
    """What a row changes.

    Attributes:
        model: The model that is written.
        owners: Workers whose own it becomes, padded.
        readers: Registers that it is written into, padded.
        spread: Of all models, as in `GossipState`.
        moments: State of the first worker's optimiser; None without any.
        info: Diagnostics.
        arrived: The model that has arrived; None where models meet in pairs.
    """

    model: Model
    owners: Int[Array, " W"]
    readers: Int[Array, " W"]
    spread: Spread | None
    moments: object
    info: Info
    arrived: Model | None


class GossipKernel(Probeable[HorizontalProblem, GossipState]):
    """Every worker steps its own model; averagings mix them.

    A method defines the worker's computation and the merging of two models. It may also
    define `read`, the model that is read, and `distance`, the distance of models.

    Attributes:
        step_size: Step size of a mean gradient.
        gradient: Computes the contribution of a row's first worker at the model that it
            has read, from problem, key, model and event.
        mixing: Matrices of averagings of everyone, in turn; None for pairs.
        merging: How two models become one.
        optimizer: Each worker's own; None for plain SGD.
        num_workers: K.
        num_messages: M, registers of models on their way; 0 where none is pushed.
        measured: Whether every row has the consensus distance, which costs a quarter of
            the time of a run on a network.
    """

    per_worker_models: ClassVar[bool] = True
    step_size: Schedule | Steps
    gradient: Callable[..., client_work.Work]
    mixing: Float[Array, "Q K K"] | None
    merging: Merging
    optimizer: UpdateRule | None
    num_workers: int = eqx.field(static=True)
    num_messages: int = eqx.field(static=True)
    measured: bool = eqx.field(static=True)

    def read(
        self, state: GossipState, models: Model, worker: Int[Array, ""] | None = None
    ) -> Model:
        """Returns the models that workers, by default all, would read."""
        return models

    def distance(self, state: GossipState, spread: Spread) -> Float[Array, ""]:
        """Returns the mean squared distance of models from the average model."""
        return spread.total / self.num_workers

    def init(self, problem: HorizontalProblem, key: Key[Array, ""]) -> GossipState:
        weights, K = problem.start(key), self.num_workers
        models = jnp.tile(weights, (K, *(1,) * weights.ndim))
        on_way = jnp.zeros((self.num_messages, *weights.shape), weights.dtype)
        registers = jnp.concatenate([models, on_way])
        together = Spread(weights, jnp.zeros((), weights.dtype))
        moments = optimizing.start(self.optimizer, problem, weights)
        return GossipState(
            models=models,
            registers=registers,
            spread=together if self.measured else None,
            memory=self.merging.begin(K, registers),
            key=key,
            moments=optimizing.table(moments, K),
        )

    def step(
        self, problem: HorizontalProblem, state: GossipState, event: Event
    ) -> tuple[GossipState, Info]:
        """Steps a worker's model (COMMIT), or mixes models (AVERAGE, AVERAGE_ALL).

        A model that is pushed is written into a message (SEND), and that is merged into
        the receiver's model (MERGE).

        All reads are within one branch, and its one written model is the branch's
        output: so XLA writes in place, row by row of the table. XLA would compute a
        model that is not an output of a branch again wherever it is written, from the
        models before it, and would keep a copy of those.
        """
        commit = partial(self._commit, problem, state, event)
        same = partial(_same, state, event, jax.eval_shape(commit))
        makers = {
            Kind.COMMIT: commit,
            Kind.AVERAGE: lambda: self._average(state, event, same()),
        }
        if self.num_messages:
            makers[Kind.SEND] = lambda: same()._replace(
                model=state.models[event.worker[1]], readers=event.read_slot
            )
            makers[Kind.MERGE] = lambda: self._merge(state, event, same())
        kinds = [*makers]
        place = [kinds.index(k) if k in kinds else len(kinds) for k in Kind]
        branch = jnp.array(place)[event.kind]
        change = jax.lax.switch(branch, [*makers.values(), same])
        stepped = jnp.where(event.kind == Kind.COMMIT, event.worker[0], NO_WORKER)
        seen = self.read(state, change.model, event.worker[0])
        state = state._replace(
            models=_put(state.models, change.owners, change.model),
            registers=_put(state.registers, change.readers, seen),
            spread=change.spread,
            memory=self.merging.after(state.memory, event, change.arrived),
            moments=optimizing.written(state.moments, stepped, change.moments),
        )
        if self.mixing is not None:
            state = self._mixed(state, event, self.mixing)
        if state.spread is None:
            return state, change.info
        return state, {**change.info, DISTANCE: self.distance(state, state.spread)}

    def refreshed(self, state: GossipState) -> GossipState:
        """Measures the spread again, before rounding adds up.

        Not in a row: a branch that may do so would copy all models in every row.
        """
        held = self.read(state, state.models)
        return state._replace(spread=state.spread and spread_of(held))

    def read_out(self, state: GossipState) -> Model:
        return state.models.mean(axis=0)

    def evaluate(
        self, problem: HorizontalProblem, state: GossipState, metrics: tuple[str, ...]
    ) -> dict[str, Array]:
        of: dict[Models, tuple[str, ...]] = {
            models: tuple(name for name in metrics if metric(name).models is models)
            for models in Models
        }
        average, held = self.read_out(state), self.read(state, state.models)
        found = problem.evaluate(average, of[Models.READ_OUT])
        for name in of[Models.ALL_WORKERS]:
            found[name] = metric(name).function()(problem, held, average)
        if each := of[Models.EACH_WORKER]:
            found |= jax.lax.map(lambda model: problem.evaluate(model, each), held)
        return found

    def reveal(
        self, problem: HorizontalProblem, state: GossipState, event: Event
    ) -> dict[str, Array]:
        """Returns a step's noisy gradient, the gradient in it, and where from."""
        read = state.registers.at[event.worker[0]].get(mode="fill", fill_value=0)
        work = self.gradient(problem, state.key, read, event)
        values = {"message": work.message, "gradient": work.gradient, "state": read}
        return jax.tree.map(lambda own: jnp.stack([own, jnp.zeros_like(own)]), values)

    def _commit(
        self, problem: HorizontalProblem, state: GossipState, event: Event
    ) -> _Change:
        worker, made = event.worker[0], event.version
        if self.mixing is not None:  # all steps of a round are of one size
            made = made // self.num_workers * self.num_workers
        step_size = reported = self.step_size.at(made)
        old = state.models[worker]
        moments = optimizing.of_workers(state.moments, worker)
        work = self.gradient(problem, state.key, state.registers[worker], event)
        direction, job = work.message, event.job[0]
        if self.optimizer is not None:
            reported = self.optimizer.scaled(step_size, job)
            direction, moments = self.optimizer.update(
                direction, moments, old, job, arrays_of_rows(problem)
            )
        moved = old - (step_size * direction).astype(old.dtype)
        if count := problem.model.num_statistics:  # they follow those of the batch
            assert work.statistics is not None
            kept = client_work.running(old[-count:], work.statistics)
            moved = jnp.concatenate([moved[:-count], kept])
        ends = (self.read(state, model, worker) for model in (old, moved))
        spread = state.spread and state.spread.moved(self.num_workers, *ends)
        info = {
            "loss": work.loss,
            "gradient_norm": norm(work.message),
            "step_size": reported.astype(work.loss.dtype),
            **work.info,
        }
        arrived = jnp.zeros_like(moved) if self.num_messages else None
        return _Change(
            moved, event.worker, event.worker, spread, moments, info, arrived
        )

    def _average(self, state: GossipState, event: Event, same: _Change) -> _Change:
        one, other = (state.models[event.worker[place]] for place in (0, 1))
        merged = self.merging.merged(state.memory, event, one, other)
        spread = state.spread and self.merging.spread(
            self.num_workers, state.spread, one, other, merged
        )
        return same._replace(
            model=merged, owners=event.worker, readers=event.read_slot, spread=spread
        )

    def _merge(self, state: GossipState, event: Event, same: _Change) -> _Change:
        own = state.models[event.worker[0]]
        arrived = state.registers[event.read_slot[1]]
        merged = self.merging.merged(state.memory, event, own, arrived)
        spread = state.spread and state.spread.moved(self.num_workers, own, merged)
        first = same.owners.at[0]
        return same._replace(
            model=merged,
            owners=first.set(event.worker[0]),
            readers=first.set(event.read_slot[0]),
            spread=spread,
            arrived=arrived,
        )

    def _mixed(
        self, state: GossipState, event: Event, mixing: Float[Array, "Q K K"]
    ) -> GossipState:
        """Mixes all models where a row says so.

        A loop of one or no turn keeps the models where they are, which a branch would
        copy in every row.
        """
        # Before the steps of round r there have been r K of them, or all of its own.
        ended = event.read_slot[0] != NO_SLOT
        made = event.version // self.num_workers - ended
        matrix = mixing[made % mixing.shape[0]]

        def mix(_: Array, state: GossipState) -> GossipState:
            flat = state.models.reshape(self.num_workers, -1)
            models = (matrix.astype(flat.dtype) @ flat).reshape(state.models.shape)
            shares = None if state.shares is None else matrix @ state.shares
            state = state._replace(models=models, shares=shares)
            held = self.read(state, state.models)
            registers = jnp.where(ended, held, state.registers)
            spread = state.spread and spread_of(held)
            return state._replace(registers=registers, spread=spread)

        turns = (event.kind == Kind.AVERAGE_ALL).astype(jnp.int32)
        return jax.lax.fori_loop(0, turns, mix, state)


def _same(state: GossipState, event: Event, change: _Change) -> _Change:
    """Returns the change of a row that writes no model, in the form of a step's."""
    blank = jax.tree.map(lambda like: jnp.zeros(like.shape, like.dtype), change)
    info = jax.tree.map(lambda zero: zero + jnp.nan, blank.info)
    none = jnp.full_like(event.worker, NO_WORKER)
    return blank._replace(owners=none, readers=none, spread=state.spread, info=info)


def _put(table: Table, rows: Int[Array, " w"], model: Model) -> Table:
    """Writes one model to some rows of a table in place; those behind it are none."""
    for row in rows:
        table = table.at[row].set(model, mode="drop")
    return table
