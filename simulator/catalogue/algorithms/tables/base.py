"""What methods with a table share: the model, what clients read, and their work."""

from abc import abstractmethod
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from ....engine import client_work
from ....engine.client_work import Work
from ....engine.kernel import Event, Info, Probeable, norm, on_device
from ....engine.setup import RunSetup
from ....engine.step_rules import Schedule, Steps, resolve
from ....files.timeline import Kind
from ....problem.constants import Constants
from ....problem.horizontal import HorizontalProblem
from .part import TableMethod


class TableState(NamedTuple):
    """The server's state, and the versions that clients under way have read.

    Attributes:
        weights: Weights of the server's model, of any shape.
        registers: Versions of it.
        memory: What the method keeps of the clients.
        key: Key of what training draws; None without any.
    """

    weights: Float[Array, "..."]
    registers: Float[Array, "R ..."]
    memory: Any
    key: Key[Array, ""] | None


class Contribution(NamedTuple):
    """One contribution, as a method gets it.

    Attributes:
        client: Its client; a number of no client where the row names none.
        message: What was sent; zeros where the row names none.
        staleness: Versions since its read.
        version: Commits applied before the row.
        commits: Whether the row is a commit.
        num_clients: K.
    """

    client: Int[Array, ""]
    message: Float[Array, "..."]
    staleness: Int[Array, ""]
    version: Int[Array, ""]
    commits: Bool[Array, ""]
    num_clients: int


class TableKernel(Probeable[HorizontalProblem, TableState]):
    """Steps by a direction that a method makes of its table.

    A method says what it keeps (`begin`) and what becomes of that with an arrival
    (`take`); rows have one worker.

    Attributes:
        step_size: The server's.
        local_step_size: Step size of a client's own steps.
        local_steps: Q.
        num_registers: Registers of the timeline.
    """

    step_size: Schedule | Steps
    local_step_size: Schedule | Steps
    local_steps: int = eqx.field(static=True)
    num_registers: int = eqx.field(static=True)

    @abstractmethod
    def begin(self, num_clients: int, weights: Float[Array, "..."]) -> Any:
        """Returns what the method keeps, before the first arrival."""

    @abstractmethod
    def take(
        self, memory: Any, arrival: Contribution
    ) -> tuple[Any, Float[Array, "..."]]:
        """Returns what the method keeps, and the direction if the row is a commit.

        An arrival of no client that is no commit leaves all as it is.
        """

    def init(self, problem: HorizontalProblem, key: Key[Array, ""]) -> TableState:
        """Starts at the model's start; version 0 stands in register 0."""
        weights = problem.start(key)
        return TableState(
            weights=weights,
            registers=problem.registers(self.num_registers, weights),
            memory=self.begin(problem.num_clients, weights),
            key=key if problem.takes_key else None,
        )

    def step(
        self, problem: HorizontalProblem, state: TableState, event: Event
    ) -> tuple[TableState, Info]:
        """Takes the contribution of a CONTRIBUTE or COMMIT; a COMMIT makes a step."""
        registers = client_work.keep(state.registers, state.weights, event)
        work = self._work(problem, registers, state.key, event)
        there = event.present()[0]
        commits = event.kind == Kind.COMMIT
        arrival = Contribution(
            client=event.worker[0],
            message=jnp.where(there, work.message, 0),
            staleness=event.staleness[0],
            version=event.version,
            commits=commits,
            num_clients=problem.num_clients,
        )
        memory, direction = self.take(state.memory, arrival)
        step_size = self.step_size.at(event.version)
        moved = state.weights - (step_size * direction).astype(state.weights.dtype)
        weights = jnp.where(commits, moved, state.weights)
        info = {
            "loss": jnp.where(there, work.loss, 0),
            "step_size": step_size,
            "gradient_norm": jnp.where(commits, norm(direction), 0),
        }
        return TableState(weights, registers, memory, state.key), info

    @classmethod
    def of(
        cls, config: TableMethod, setup: RunSetup, constants: Constants, **own: Any
    ) -> Self:
        """Returns the kernel of a scenario's method, with fields of its own."""
        step_size, _ = resolve(config.step_size, constants)
        local, rule = step_size, config.local_step_size
        if rule is not None:
            local, _ = resolve(rule, constants)
        return cls(
            step_size=on_device(step_size),
            local_step_size=on_device(local),
            local_steps=config.local_steps,
            num_registers=setup.timeline.num_registers,
            **own,
        )

    def read_out(self, state: TableState) -> Float[Array, "..."]:
        return state.weights

    def reveal(
        self, problem: HorizontalProblem, state: TableState, event: Event
    ) -> dict[str, Array]:
        """Returns the row's message, the gradient in it, and where from."""
        registers = client_work.keep(state.registers, state.weights, event)
        work = self._work(problem, registers, state.key, event)
        read = problem.narrowed(client_work.read(registers, event))
        return {
            "message": work.message[None],
            "gradient": work.gradient[None],
            "state": read,
        }

    def _work(
        self,
        problem: HorizontalProblem,
        registers: Float[Array, "R ..."],
        key: Key[Array, ""] | None,
        event: Event,
    ) -> Work:
        """Returns the contribution of the row's only worker."""
        start = client_work.read(registers, event)[0]
        samples = client_work.samples_of(event, self.local_steps)[0]
        drawn = client_work.training_key(problem, key, event.worker[0], event.job[0])
        local = self.local_step_size.at(event.version)
        return client_work.local_steps(problem, start, samples, local, key=drawn)
