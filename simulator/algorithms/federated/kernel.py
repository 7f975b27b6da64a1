"""A chain of stages: SGD, FedAvg, FedAsync, FedBuff, and others of their stages.

Plain asynchronous SGD is `Chain.step` with one local step (`client.LocalSteps`),
contributions applied one by one (`aggregation.AtOnce`) and nothing optional.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
from jaxtyping import Array, Float, Key

from ...learning.horizontal import HorizontalProblem
from .. import client_work
from ..base import Event, Info, Probeable
from ..client_work import Work
from ..optimizers import rule as optimizing
from ..step_rules import Schedule, Steps
from .stages import (
    ChainStage,
    ClientJob,
    Contributions,
    ServerRow,
    StepStage,
    mean_of,
)
from .weighing import Weighing


class ChainState(NamedTuple):
    """The server's model, the versions that clients have read, and the stages' states.

    Attributes:
        weights: Weights of the server's model, of any shape.
        registers: Versions of it.
        key: Key of the noise and of what training draws; None without any.
        clients: State of the work and of each stage of sending, for all clients: arrays
            `[K, ...]`, or None.
        received: State of each stage of receiving.
        weighing: Contributions of every client, where weights count them.
        server: State of the server's step.
    """

    weights: Float[Array, "..."]
    registers: Float[Array, "R ..."]
    key: Key[Array, ""] | None
    clients: tuple[Any, ...]
    received: tuple[Any, ...]
    weighing: Any
    server: Any


class Chain(Probeable):
    """Applies contributions, each taken at what its client read.

    Attributes:
        step_size: The server's.
        local_step_size: Step size of a client's own steps.
        work: The client's work.
        sent: What becomes of a contribution before it is sent, in this order.
        received: What becomes of contributions as they arrive.
        weighing: What each counts.
        server: What becomes of the model.
        local_steps: Q, the most of a client where they are uneven.
        num_registers: Registers of the timeline.
    """

    step_size: Schedule | Steps
    local_step_size: Schedule | Steps
    work: ChainStage
    sent: tuple[ChainStage, ...]
    received: tuple[ChainStage, ...]
    weighing: Weighing
    server: StepStage
    local_steps: int = eqx.field(static=True)
    num_registers: int = eqx.field(static=True)

    def init(self, problem: HorizontalProblem, key: Key[Array, ""]) -> ChainState:
        """Starts at the model's start; version 0 stands in register 0."""
        weights = problem.start(key)
        stages = (self.work, *self.sent, *self.received, self.server)
        draws = problem.takes_key or any(stage.draws for stage in stages)
        return ChainState(
            weights=weights,
            registers=problem.registers(self.num_registers, weights),
            key=key if draws else None,
            clients=tuple(
                optimizing.table(stage.start(problem, weights), problem.num_clients)
                for stage in (self.work, *self.sent)
            ),
            received=tuple(stage.start(problem, weights) for stage in self.received),
            weighing=self.weighing.start(problem, weights),
            server=self.server.start(problem, weights),
        )

    def step(
        self, problem: HorizontalProblem, state: ChainState, event: Event
    ) -> tuple[ChainState, Info]:
        """Takes the contributions of a COMMIT or CONTRIBUTE through all stages."""
        row = self._row(problem, state, event)
        registers = self._kept(row, state)
        wide = client_work.read(registers, event)
        work, after = self._contribute(row, wide, state)
        read = problem.narrowed(wide)
        factor, share, counts = self.weighing(row, read, state.weighing)
        sent = Contributions(read, work.message, work.statistics, factor, share)
        received = []
        for stage, own in zip(self.received, state.received, strict=True):
            sent, own = stage(row, sent, own)
            received.append(own)
        weights, server, made = self.server(row, sent, state.server)
        present = event.present()
        info = {"loss": work.loss, "weight": factor} | work.info
        info = {name: mean_of(present, value) for name, value in info.items()}
        clients = optimizing.written(state.clients, event.worker, after)
        stages = clients, tuple(received), counts, server
        return ChainState(weights, registers, state.key, *stages), info | made

    def read_out(self, state: ChainState) -> Float[Array, "..."]:
        """Returns the server's model."""
        return state.weights

    def reveal(
        self, problem: HorizontalProblem, state: ChainState, event: Event
    ) -> dict[str, Array]:
        """Returns the row's messages, the gradients in them, and where from."""
        row = self._row(problem, state, event)
        read = client_work.read(self._kept(row, state), event)
        work, _ = self._contribute(row, read, state)
        return {
            "message": work.message,
            "gradient": work.gradient,
            "state": problem.narrowed(read),
        }

    def _row(
        self, problem: HorizontalProblem, state: ChainState, event: Event
    ) -> ServerRow:
        step_size = self.step_size.at(event.version)
        return ServerRow(
            problem=problem,
            event=event,
            weights=state.weights,
            step_size=step_size,
            rate=self.server.scaled(step_size, event.version),
            local_step_size=self.local_step_size.at(event.version),
            key=state.key,
        )

    def _kept(self, row: ServerRow, state: ChainState) -> Float[Array, "R ..."]:
        """Returns the registers with what clients read of the model before the row."""
        offered = self.server.ahead(state.weights, state.server, row.step_size)
        return client_work.keep(state.registers, offered, row.event)

    def _contribute(
        self, row: ServerRow, read: Float[Array, "W ..."], state: ChainState
    ) -> tuple[Work, tuple[Any, ...]]:
        """Returns what each worker of a row sends, and the states of their stages."""
        event = row.event

        def of_worker(
            read: Array, samples: Array, worker: Array, number: Array, own: Any
        ) -> tuple[Work, tuple[Any, ...]]:
            step_size = row.local_step_size
            job = ClientJob(
                row.problem, read, samples, step_size, worker, number, row.key
            )
            work, after = self.work(job, own[0])
            states = [after]
            for stage, before in zip(self.sent, own[1:], strict=True):
                work, after = stage(job, work, before)
                states.append(after)
            return work, tuple(states)

        own = optimizing.of_workers(state.clients, event.worker)
        samples = client_work.samples_of(event, self.local_steps)
        workers = (read, samples, event.worker, event.job, own)
        if read.shape[0] > 1:
            return jax.vmap(of_worker)(*workers)
        # With an axis of one, XLA would write the batch a second time, transposed.
        alone = of_worker(*jax.tree.map(lambda value: value[0], workers))
        return jax.tree.map(lambda value: value[None], alone)
