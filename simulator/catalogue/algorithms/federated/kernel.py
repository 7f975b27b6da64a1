"""A chain of stages: SGD, FedAvg, FedAsync, FedBuff, and others of their stages.

Plain asynchronous SGD is `Chain.step` with one local step (`clients.LocalWork`),
contributions applied one by one (`server.Mean`) and nothing optional.
"""

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from ....engine import client_work
from ....engine.client_work import Divided, Work
from ....engine.kernel import ANSWER, Event, Info, Probeable, norm, on_device
from ....engine.optimizers import rule as optimizing
from ....engine.setup import RunSetup
from ....engine.step_rules import Schedule, Steps, resolve
from ....files.timeline import NO_WORKER, Kind
from ....problem.constants import Constants
from ....problem.horizontal import HorizontalProblem
from . import joint
from .abilities import LeadsStep, NeedsKey, SendsAlong
from .chain import Chained
from .stage import (
    AdjustPart,
    AggregatePart,
    AttackPart,
    ReadPart,
    ReceivePart,
    SendPart,
    ServerPart,
    Some,
    StagePart,
    WeightPart,
    WorkPart,
)
from .stages import (
    BROADCAST_ERROR,
    ClientJob,
    Contributions,
    ServerRow,
    mean_of,
    placed,
)


class StepSizes(eqx.Module):
    """Step sizes by another rule than a schedule's."""

    @abstractmethod
    def at(self, commits: Int[Array, ""]) -> Float[Array, ""]:
        """Returns the step size once some commits were made."""


class ChainState(NamedTuple):
    """The server's model, the versions that clients have read, and the stages' states.

    Attributes:
        weights: Weights of the server's model, of any shape.
        registers: Versions of it.
        key: Random key of noise and training; None without any.
        clients: State of each stage of the clients, for all of them: arrays `[K, ...]`,
            or None.
        attacks: State of each attack.
        received: State of each stage of receiving.
        weighing: State of the weights.
        stepping: States of the aggregation, of each adjustment, and of the step.
        along: What went along with the versions in the registers; None without any.
    """

    weights: Float[Array, "..."]
    registers: Float[Array, "R ..."]
    key: Key[Array, ""] | None
    clients: tuple[object, ...]
    attacks: tuple[object, ...]
    received: tuple[object, ...]
    weighing: object
    stepping: tuple[object, ...]
    along: Float[Array, "R ..."] | None = None


Given = tuple[Float[Array, "W ..."], tuple[object, ...], Float[Array, "W ..."] | None]
"""The models that the workers of a row have read, as wide as registers, the states of
their stages, and the data sent with the model, if any."""


Sent = tuple[Work, tuple[object, ...], Float[Array, "W ..."] | None]
"""The messages of the workers of a row, without gradients, the states of their stages
after it, and their models, where these are not the ones read."""


class Chain(
    Divided[HorizontalProblem, ChainState, Given, Sent],
    Probeable[HorizontalProblem, ChainState],
):
    """Applies contributions, each computed at the model that its client read.

    Attributes:
        step_size: The server's.
        local_step_size: Step size of a client's own steps.
        work: The client's work.
        sent: Transformations of a contribution before it is sent, in this order.
        attacks: Messages that Byzantine clients send in place of their contributions.
        received: Transformations of contributions on arrival.
        weighing: The weights; None where all have equal weight.
        aggregation: Combines a row's contributions; none where the server applies them
            one by one.
        adjusted: Transformations of a step before it is made, in this order.
        server: Computes the next model.
        local_steps: Q, the most of a client where they are uneven.
        num_registers: Registers of the timeline.
        uneven: Whether clients' jobs differ in steps or samples.
        is_joint: Whether the workers of a row, who have read the same version, make one
            gradient together.
        reads: Transformations of the model on its way to a client, in this order.
        asks: Values of each worker of a row that the world needs.
    """

    step_size: Schedule | Steps | StepSizes
    local_step_size: Schedule | Steps | StepSizes
    work: WorkPart
    server: ServerPart
    local_steps: int = eqx.field(static=True)
    num_registers: int = eqx.field(static=True)
    uneven: bool = eqx.field(static=True, default=False)
    is_joint: bool = eqx.field(static=True, default=False)
    reads: tuple[ReadPart, ...] = ()
    sent: tuple[SendPart, ...] = ()
    attacks: tuple[AttackPart, ...] = ()
    received: tuple[ReceivePart, ...] = ()
    weighing: WeightPart | None = None
    aggregation: AggregatePart | None = None
    adjusted: tuple[AdjustPart, ...] = ()
    asks: tuple[str, ...] = eqx.field(static=True, default=())

    @property
    def of_clients(self) -> tuple[StagePart, ...]:
        """The stages that have a state for each client."""
        return (*self.reads, self.work, *self.sent)

    @property
    def stepping(self) -> tuple[StagePart, ...]:
        """The stages that make a step of contributions."""
        first = () if self.aggregation is None else (self.aggregation,)
        return (*first, *self.adjusted, self.server)

    def joined(self, problem: HorizontalProblem) -> "Chain | None":
        return replace(self, is_joint=True) if joint.possible(self, problem) else None

    def init(self, problem: HorizontalProblem, key: Key[Array, ""]) -> ChainState:
        weights = problem.start(key)
        stages = (*self.of_clients, *self.attacks, *self.received, *self.stepping)
        draws = problem.takes_key or any(
            isinstance(s, NeedsKey) and s.draws for s in stages
        )
        state = ChainState(
            weights=weights,
            registers=problem.registers(self.num_registers, weights),
            key=key if draws else None,
            clients=tuple(
                optimizing.table(stage.start(problem, weights), problem.num_clients)
                for stage in self.of_clients
            ),
            attacks=tuple(stage.start(problem, weights) for stage in self.attacks),
            received=tuple(stage.start(problem, weights) for stage in self.received),
            weighing=self.weighing and self.weighing.start(problem, weights),
            stepping=tuple(stage.start(problem, weights) for stage in self.stepping),
        )
        first = self._along(state)
        if first is None:
            return state
        registers = jnp.zeros((self.num_registers, *first.shape), first.dtype)
        return state._replace(along=registers.at[0].set(first))

    def _along(self, state: ChainState) -> Float[Array, "..."] | None:
        """Returns what goes along with the model now, if anything does."""
        stages = (*self.received, self.weighing, *self.stepping)
        states = (*state.received, state.weighing, *state.stepping)
        for stage, own in zip(stages, states, strict=True):
            if isinstance(stage, SendsAlong):
                return stage.along(own)
        return None

    def kept(self, state: ChainState) -> tuple[object, ...]:
        return state.clients

    def opened(
        self, problem: HorizontalProblem, state: ChainState, event: Event
    ) -> ChainState:
        step_size, offered = self.step_size.at(event.version), state.weights
        for stage, own in zip(self.adjusted, state.stepping[1:-1], strict=True):
            if isinstance(stage, LeadsStep):
                offered = stage.ahead(offered, own, step_size)
        registers = client_work.keep(state.registers, offered, event)
        along, sent = state.along, self._along(state)
        if along is not None and sent is not None:
            along = client_work.keep(along, sent, event)
        return state._replace(registers=registers, along=along)

    def given(self, state: ChainState, event: Event) -> Given:
        read = client_work.read(state.registers, event)
        own = optimizing.of_workers(state.clients, event.worker)
        return read, own, _along_with(state, event)

    def work_inputs(
        self, problem: HorizontalProblem, event: Event, given: Given
    ) -> tuple[Float[Array, "W ..."], Float[Array, ""]]:
        return problem.narrowed(given[0]), self.local_step_size.at(event.version)

    def computed(
        self,
        problem: HorizontalProblem,
        key: Key[Array, ""] | None,
        event: Event,
        given: Given,
        made: Work | None = None,
    ) -> Sent:
        work, after, read = self._computed(problem, key, event, given, made)
        return work._replace(gradient=None), after, read

    def apply(
        self, problem: HorizontalProblem, state: ChainState, event: Event, sent: Sent
    ) -> tuple[ChainState, Info]:
        row, arrived, counts = self._arrived(problem, state, event, sent)
        return self._served(row, state, arrived, counts, sent)

    def step(
        self, problem: HorizontalProblem, state: ChainState, event: Event
    ) -> tuple[ChainState, Info]:
        if not self.is_joint:
            return super().step(problem, state, event)
        state = self.opened(problem, state, event)
        row, width = self._row(problem, state, event), event.worker.shape[0]
        slot = event.read_slot.min()  # padding has the largest number
        read = state.registers.at[slot].get(mode="fill", fill_value=0)
        reads = jnp.broadcast_to(problem.narrowed(read), (width, *state.weights.shape))
        factor, share, counts = self._weighed(row, reads, state)
        along = _along_with(state, event)
        arrived = Contributions(reads, None, None, factor, share, along=along)
        samples = client_work.samples_of(event, 1)[:, 0]
        shares = arrived.weight.astype(read.dtype)
        losses, total = joint.gradient(problem, read, samples, shares)
        arrived = arrived._replace(total=total)
        sent = Work(losses, None, total, {})
        return self._served(row, state, arrived, counts, (sent, (None,), None))

    def _served(
        self,
        row: ServerRow,
        state: ChainState,
        arrived: Contributions,
        counts: object,
        sent: Sent,
    ) -> tuple[ChainState, Info]:
        """Returns the state after what the server makes of contributions, and info."""
        event, (work, clients, _) = row.event, sent
        arrived, attacks = _through(self.attacks, row, arrived, state.attacks)
        message = arrived.message  # as the server gets it
        arrived, received = _through(self.received, row, arrived, state.received)
        weights, stepping, made = self._stepped(row, arrived, state.stepping)
        first, worked, fails = len(self.reads), event.worker, event.kind == Kind.READ
        if self.reads:  # of a job of which nothing comes the client has got the model
            worked = jnp.where(fails, NO_WORKER, worked)
            before = state.attacks, state.received, state.weighing, state.stepping
            weights, (attacks, received, counts, stepping) = jax.tree.map(
                partial(jnp.where, fails),
                (state.weights, before),
                (weights, (attacks, received, counts, stepping)),
            )
        kept = (
            *optimizing.written(state.clients[:first], event.worker, clients[:first]),
            *optimizing.written(state.clients[first:], worked, clients[first:]),
        )
        after = kept, attacks, received, counts, stepping
        info = self._measured(event, arrived, work) | arrived.info | made
        if "losses" in self.asks:
            info[f"{ANSWER}losses"] = work.loss
        if "norms" in self.asks:
            info[f"{ANSWER}norms"] = jax.vmap(norm)(message)
        if self.reads:
            got = {name: info[name] for name in info if name == BROADCAST_ERROR}
            nothing = {k: jnp.where(fails, jnp.nan, v) for k, v in info.items()}
            info = nothing | got
        of_run = state.registers, state.key
        return ChainState(weights, *of_run, *after, along=state.along), info

    def _stepped(
        self, row: ServerRow, arrived: Contributions, states: tuple[object, ...]
    ) -> tuple[Float[Array, "..."], tuple[object, ...], Info]:
        """Returns the model after a row, the states of the stages, and diagnostics."""
        if self.aggregation is None:
            weights, after, info = self.server(row, arrived, states[-1])
            return weights, (after,), info
        step, first, info = self.aggregation(row, arrived, states[0])
        statistics, count = None, row.num_statistics
        if count:  # statistics are means, not steps
            statistics = step.direction[-count:]
            step = step._replace(direction=step.direction.at[-count:].set(0))
        after = [first]
        for stage, own in zip(self.adjusted, states[1:-1], strict=True):
            step, own = stage(row, step, own)
            after.append(own)
        moved, last, made = self.server(row, step, states[-1])
        moved = placed(moved, statistics, jnp.int32(1))
        weights = jnp.where(step.applies, moved, row.weights)
        return weights, (*after, last), info | made

    def read_out(self, state: ChainState) -> Float[Array, "..."]:
        return self.server.read_out(state.weights, state.stepping[-1])

    def reveal(
        self, problem: HorizontalProblem, state: ChainState, event: Event
    ) -> dict[str, Array]:
        """Returns the row's messages, the gradients in them, and where from."""
        state = self.opened(problem, state, event)
        given = self.given(state, event)
        work, _, read = self._computed(problem, state.key, event, given)
        assert work.gradient is not None
        return {
            "message": work.message,
            "gradient": work.gradient,
            "state": problem.narrowed(given[0]) if read is None else read,
        }

    def _row(
        self, problem: HorizontalProblem, state: ChainState, event: Event
    ) -> ServerRow:
        step_size = rate = self.step_size.at(event.version)
        for stage in self.adjusted:
            if isinstance(stage, LeadsStep):
                rate = stage.scaled(rate, event.version)
        return ServerRow(
            problem=problem,
            event=event,
            weights=state.weights,
            step_size=step_size,
            rate=rate,
            local_step_size=self.local_step_size.at(event.version),
            key=state.key,
        )

    def _arrived(
        self, problem: HorizontalProblem, state: ChainState, event: Event, sent: Sent
    ) -> tuple[ServerRow, Contributions, object]:
        """Returns a row, its contributions, and the counts after it."""
        row, (work, _, read) = self._row(problem, state, event), sent
        if read is None:
            read = problem.narrowed(client_work.read(state.registers, event))
        factor, share, counts = self._weighed(row, read, state)
        along, made = _along_with(state, event), (work.message, work.statistics)
        arrived = Contributions(read, *made, factor, share, along=along)
        return row, arrived, counts

    def _weighed(
        self, row: ServerRow, read: Float[Array, "W ..."], state: ChainState
    ) -> tuple[Array, Array, object]:
        """Returns the factors and shares of contributions, and the counts after."""
        if self.weighing is None:
            return row.event.present(), row.event.present(), None
        return self.weighing(row, read, state.weighing)

    def _measured(self, event: Event, arrived: Contributions, work: Work) -> Info:
        """Returns the diagnostics of a row's contributions: means over its workers."""
        info = {"loss": work.loss} | work.info
        if self.weighing is not None:
            info = {"weight": arrived.factor} | info
        return {name: mean_of(event.present(), value) for name, value in info.items()}

    def _computed(
        self,
        problem: HorizontalProblem,
        key: Key[Array, ""] | None,
        event: Event,
        given: Given,
        made: Work | None = None,
    ) -> Sent:
        step_size, first = self.local_step_size.at(event.version), len(self.reads)

        def of_worker(
            read: Array,
            samples: Array,
            worker: Array,
            number: Array,
            version: Array,
            own: tuple[object, ...],
            along: Array | None,
            made: Work | None,
        ) -> tuple[Work, tuple[object, ...], Array | None]:
            taken = client_work.steps_of(samples) if self.uneven else None
            facts = problem, read, samples, step_size, worker, number, version, key
            job = ClientJob(*facts, taken=taken, along=along)
            states = []
            for stage, before in zip(self.reads, own[:first], strict=True):
                job, after = stage(job, before)
                states.append(after)
            work, after = (made, own[first]) if made else self.work(job, own[first])
            states.append(after)
            work = work._replace(info=job.info | work.info)
            for stage, before in zip(self.sent, own[first + 1 :], strict=True):
                work, after = stage(job, work, before)
                states.append(after)
            return work, tuple(states), job.read if self.reads else None

        samples = client_work.samples_of(event, self.local_steps)
        (read, own, along), versions = given, event.version - event.staleness
        workers = (read, samples, event.worker, event.job, versions, own, along, made)
        if event.worker.size > 1:
            return jax.vmap(of_worker)(*workers)
        # With an axis of one, XLA would write the batch a second time, transposed.
        alone = of_worker(*jax.tree.map(lambda value: value[0], workers))
        return jax.tree.map(lambda value: value[None], alone)


def _along_with(state: ChainState, event: Event) -> Float[Array, "W ..."] | None:
    """Returns what went along with the versions that the workers of a row have read."""
    return None if state.along is None else client_work.read(state.along, event)


def _through(
    stages: tuple[StagePart, ...],
    row: ServerRow,
    arrived: Contributions,
    states: tuple[object, ...],
) -> tuple[Contributions, tuple[object, ...]]:
    after = []
    for stage, own in zip(stages, states, strict=True):
        arrived, own = stage(row, arrived, own)
        after.append(own)
    return arrived, tuple(after)


def build(config: Chained, setup: RunSetup, constants: Constants) -> Chain:
    """Returns the kernel of a method that is a chain of stages."""
    made = [stage.make(setup, constants) for stage in config.stages]

    def of(place: type[Some]) -> tuple[Some, ...]:
        return tuple(stage for stage in made if isinstance(stage, place))

    rules = config.server_rule, config.local_rule
    schedules = [resolve(rule, constants)[0] for rule in rules]
    server, local = map(on_device, schedules)
    log = setup.timeline.answer_log
    return of_run(
        setup,
        step_size=server,
        local_step_size=local,
        reads=of(ReadPart),
        work=of(WorkPart)[0],
        sent=of(SendPart),
        attacks=of(AttackPart),
        received=of(ReceivePart),
        weighing=of(WeightPart)[0],
        aggregation=next(iter(of(AggregatePart)), None),
        adjusted=of(AdjustPart),
        server=of(ServerPart)[0],
        asks=() if log is None else log.asks,
    )


def of_run(setup: RunSetup, **fields: Any) -> Chain:
    """Returns a chain for a run, of step sizes and stages as `Chain` has them."""
    return Chain(
        local_steps=setup.sampler.steps,
        num_registers=setup.timeline.num_registers,
        uneven=setup.sampler.own_steps is not None,
        **fields,
    )
