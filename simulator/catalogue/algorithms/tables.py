"""Methods whose server keeps a vector per client and weights all equally.

Each is a chain with its own aggregation: every commit applies a mean over the clients,
whatever their speeds are. The table takes as much memory as K models. No JAX is
imported until a run needs it.
"""

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from jaxtyping import Bool, Float, Int
from pydantic import Field

from ...engine.algorithm import (
    Algorithm,
    Bytes,
    ProblemShape,
    StepSize,
    model_and_gradient,
)
from ...files.timeline import NO_WORKER, Kind
from ...parts.base import LocatedError
from ...parts.lazy import Late
from ...world.protocol import Protocol
from .federated.clients import LocalWork
from .federated.server import ServerStep
from .federated.stage import AggregatePart, in_program
from .federated.stages import Contributions, ServerRow, Step

if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
    from jaxtyping import Array

    from ...engine import kernel, step_rules
    from ...engine.kernel import Info
    from ...engine.setup import RunSetup
    from ...problem.constants import Constants
    from ...problem.horizontal import HorizontalProblem
    from ...scenario.scenario import Problem
    from .federated import kernel as chains
else:
    jax, jnp = Late("jax"), Late("jax.numpy")
    kernel = Late("...engine.kernel", __package__)
    step_rules = Late("...engine.step_rules", __package__)
    chains = Late(".federated.kernel", __package__)
    Array = HorizontalProblem = Info = Any

Count = Annotated[int, Field(ge=1)]
Vector = Float[Array, "..."]
"""A client's message: as many numbers as a model has."""


class ClientTable(NamedTuple):
    """A vector of each client, and the sum of all of them.

    The sum runs along, so that an entry costs as much as one vector. Compensated
    (Knuth, The Art of Computer Programming 2, 4.2.2), it stays the sum of the entries
    to rounding however many there have been; nothing is summed up again.

    Attributes:
        entries: Vectors, but for the last that came; anything where there are no
            contributions.
        counts: Contributions of each entry.
        total: Sum of the entries.
        error: What rounding has taken from it.
        last_client: Client of the last vector that came.
        last: That vector. It is written before the next one is read: an entry that is
            read and then written would have XLA copy the whole table in each row.
    """

    entries: Float[Array, "K ..."]
    counts: Int[Array, " K"]
    total: Vector
    error: Vector
    last_client: Int[Array, ""]
    last: Vector

    @classmethod
    def empty(cls, num_clients: int, like: Vector) -> "ClientTable":
        """Returns a table of zeros."""
        zeros = jnp.zeros_like(like)
        entries = jnp.zeros((num_clients, *like.shape), like.dtype)
        counts = jnp.zeros(num_clients, jnp.int32)
        return cls(entries, counts, zeros, zeros, jnp.int32(NO_WORKER), zeros)

    @property
    def sum(self) -> Vector:
        """Sum of the entries."""
        return self.total + self.error

    def written(self) -> Float[Array, "K ..."]:
        """Returns the vectors of all clients, the last one that came among them."""
        return self.entries.at[self.last_client].set(self.last, mode="drop")

    def of(self, client: Int[Array, ""]) -> Vector:
        """Returns a client's entry; zeros where it has none, and of padding."""
        there = self.counts.at[client].get(mode="fill", fill_value=0) > 0
        entry = self.written().at[client].get(mode="fill", fill_value=0)
        return jnp.where(there, entry, 0)

    def replaced(self, client: Int[Array, ""], entry: Vector) -> "ClientTable":
        """Returns the table with a newer entry of a client; as it is for padding."""
        there = client < self.counts.shape[0]
        # One after the other: the rounding of their difference would add up.
        total, lost = two_sum(self.total, jnp.where(there, entry, 0))
        total, lost_too = two_sum(total, -self.of(client))
        return ClientTable(
            self.written(),
            self.counts.at[client].add(1, mode="drop"),
            total,
            self.error + (lost + lost_too),
            client,
            entry,
        )

    def averaged(self, client: Int[Array, ""], contribution: Vector) -> "ClientTable":
        """Returns the table with a contribution taken into its client's mean."""
        count = self.counts.at[client].get(mode="fill", fill_value=0) + 1
        old = self.of(client)
        return self.replaced(client, old + (contribution - old) / count)

    def cleared(self, condition: Bool[Array, ""]) -> "ClientTable":
        """Returns the table without entries where a condition holds, else as it is.

        The vectors stay where they are: one without contributions is not looked at.
        """
        counts, total, error = (
            jnp.where(condition, 0, each).astype(each.dtype)
            for each in (self.counts, self.total, self.error)
        )
        return self._replace(counts=counts, total=total, error=error)


def two_sum(a: Vector, b: Vector) -> tuple[Vector, Vector]:
    """Returns the rounded sum of two numbers, and what rounding took from it."""
    rounded = a + b
    of_b = rounded - a
    return rounded, (a - (rounded - of_b)) + (b - of_b)


class TableStage(AggregatePart):
    """Makes a step's direction of a table; rows have one worker.

    A method defines its state (`start`, by default a table of all clients) and the
    change of that state on an arrival (`take`).
    """

    def start(self, problem: HorizontalProblem, weights: Array) -> object:
        return ClientTable.empty(problem.num_clients, weights)

    @abstractmethod
    def take(self, kept: Any, row: ServerRow, message: Vector) -> tuple[object, Vector]:
        """Returns the state, and the direction if the row is a commit.

        An arrival of no client that is no commit leaves all as it is.

        Args:
            kept: The state before the row.
            row: The row; its worker is a number of no client where it names none.
            message: The client's message; zeros where the row names no client.
        """

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: object
    ) -> tuple[Step, object, Info]:
        """Takes the contribution of a CONTRIBUTE or COMMIT; a COMMIT makes a step."""
        assert contributions.message is not None
        message = jnp.where(row.event.present()[0], contributions.message[0], 0)
        kept, direction = self.take(state, row, message)
        commits = row.event.kind == Kind.COMMIT
        info = {"gradient_norm": jnp.where(commits, kernel.norm(direction), 0)}
        return row.step(direction, commits, jnp.ones(())), kept, info


class TableMethod(Algorithm):
    """Common base of the methods: local steps, and messages like those of `sgd`."""

    local_steps: Count = 1
    """Q: steps that a client makes on its own copy, each on a new batch; it sends the
    sum of their gradients."""
    local_step_size: StepSize | None = None
    """Step size of the local steps; by default `learning_rate`."""

    family: ClassVar[str] = "horizontal"
    numbers: ClassVar[tuple[str, ...]] = ("local_step_size",)
    stage: ClassVar[type[TableStage]]
    """The server's table and its use."""

    def messages(self, shape: ProblemShape, *, common: bool) -> Bytes:
        return model_and_gradient(shape)

    def make(self, setup: "RunSetup", constants: "Constants") -> "chains.Chain":
        """Returns a chain with the method's own aggregation, given its options."""
        own = self.local_step_size
        rules = self.step_size, self.step_size if own is None else own
        sizes = (step_rules.resolve(rule, constants)[0] for rule in rules)
        server, local = map(kernel.on_device, sizes)
        given = {k: v for k, v in self if k in self.stage.model_fields and k != "kind"}
        return chains.of_run(
            setup,
            step_size=server,
            local_step_size=local,
            work=LocalWork.model_construct().make(setup, constants),
            aggregation=in_program(self.stage(**given)),
            server=in_program(ServerStep()),
        )


class NewestOfAll(TableStage):
    """Newest contributions of all clients, or of the young enough ones.

    It keeps, with the table, the version that each was read at where ages count.
    """

    max_age: int | None = None

    def start(self, problem: HorizontalProblem, weights: Array) -> object:
        read = jnp.zeros(problem.num_clients, jnp.int32)
        return super().start(problem, weights), None if self.max_age is None else read

    def take(
        self,
        kept: tuple[ClientTable, Int[Array, " K"] | None],
        row: ServerRow,
        message: Vector,
    ) -> tuple[object, Vector]:
        (table, read), event = kept, row.event
        client = event.worker[0]
        table = table.replaced(client, message)
        if read is None or self.max_age is None:
            return (table, None), table.sum / row.problem.num_clients
        own = (event.version - event.staleness[0]).astype(jnp.int32)
        read = read.at[client].set(own, mode="drop")
        counts = (event.version - read <= self.max_age) & (table.counts > 0)
        entries = table.written()
        total = jnp.tensordot(counts.astype(entries.dtype), entries, 1)
        return (table, read), total / jnp.maximum(counts.sum(), 1)


class Ia2sgd(TableMethod):
    """Steps by the mean of every client's newest contribution, at each arrival.

    x <- x - step_size * (1/K) sum_j g_j, g_i being replaced first. Also known as ACE,
    all-client engagement; with `max_age`, ACED, the mean is over the clients whose
    contribution is at most that number of commits old. In rounds of the protocol
    `collect` it is MIFA: a step by the newest contributions of all clients, those that
    are away in this round included. There a client counts with zero until its first.

    Source: Wang et al., Tackling Data Heterogeneity in Asynchronous Federated Learning
    (2025), ACE and ACED; Gu, Huang, Zhang and Huang, Fast Federated Learning in the
    Presence of Arbitrary Device Unavailability (2021), Algorithm 1 (MIFA).
    """

    kind: Literal["ia2sgd"] = "ia2sgd"
    max_age: Annotated[int, Field(ge=0)] | None = None
    """Commits since the read of a contribution up to which it counts."""
    protocols: ClassVar[tuple[str, ...]] = ("asynchronous", "collect")
    stage: ClassVar[type[TableStage]] = NewestOfAll

    def check(self, problem: "Problem", protocol: Protocol) -> None:
        super().check(problem, protocol)
        if not protocol.gathers:
            raise LocatedError(
                "protocol.warm_up must be true with ia2sgd, whose table needs a "
                "contribution of each client before the first commit, got false; "
                "set it",
            )


class NewestModels(TableStage):
    """Newest models of all clients; of one that has sent none, the first model."""

    def start(self, problem: HorizontalProblem, weights: Array) -> ClientTable:
        n = problem.num_clients
        first = jnp.broadcast_to(weights, (n, *weights.shape))
        table = ClientTable.empty(n, weights)
        return table._replace(entries=first, counts=table.counts + 1, total=n * weights)

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: object
    ) -> tuple[Step, object, Info]:
        """Takes the model of a CONTRIBUTE or COMMIT; a COMMIT makes a step."""
        assert contributions.message is not None
        models = contributions.read - row.local_step_size * contributions.message
        return super().__call__(row, contributions._replace(message=models), state)

    def take(
        self, kept: ClientTable, row: ServerRow, message: Vector
    ) -> tuple[ClientTable, Vector]:
        table = kept.replaced(row.event.worker[0], message)
        return table, row.weights - table.sum / row.problem.num_clients


class Area(TableMethod):
    """Goes to the mean of every client's newest model, however often each one sends.

    Clients make their local steps with `learning_rate`. A client that has sent nothing
    counts with the first model. So x <- x + (1/K) sum (y_i - y_i'), y_i' being the last
    model of client i before y_i, over the contributions of a commit.

    Source: Iakovidou and Kim, Asynchronous Federated Stochastic Optimization for
    Heterogeneous Objectives Under Arbitrary Delays (2024), AREA.
    """

    kind: Literal["area"] = "area"
    protocols: ClassVar[tuple[str, ...]] = ("asynchronous", "buffered")
    stage: ClassVar[type[TableStage]] = NewestModels

    def make(self, setup: "RunSetup", constants: "Constants") -> "chains.Chain":
        whole = kernel.on_device(step_rules.resolve(1.0, constants)[0])
        return replace(super().make(setup, constants), step_size=whole)


class MeansOfRound(TableStage):
    """Means of the clients' contributions of a round, which the commit empties.

    Before the commit some clients have none, and so do clients that are not selected.
    """

    def take(
        self, kept: ClientTable, row: ServerRow, message: Vector
    ) -> tuple[ClientTable, Vector]:
        table = kept.averaged(row.event.worker[0], message)
        direction = table.sum / jnp.maximum((table.counts > 0).sum(), 1)
        return table.cleared(row.event.kind == Kind.COMMIT), direction


class Malenia(TableMethod):
    """Steps by the mean over clients of each one's mean contribution.

    x <- x - step_size * (1/K) sum_i (1/b_i) sum of client i's b_i contributions, all
    taken at x. The K clients are all that are selected; a round waits for each.

    Source: Tyurin and Richtarik, Optimal Time Complexities of Parallel Stochastic
    Optimization Methods Under a Fixed Computation Model (2023), Method 6.
    """

    kind: Literal["malenia"] = "malenia"
    protocols: ClassVar[tuple[str, ...]] = ("collect",)
    stage: ClassVar[type[TableStage]] = MeansOfRound

    def check(self, problem: "Problem", protocol: Protocol) -> None:
        super().check(problem, protocol)
        if getattr(protocol, "harmonic_mean", None) is None:
            raise LocatedError(
                "protocol.harmonic_mean must be given for malenia, whose steps are "
                "means over all clients, got a rule that may end a round without some; "
                "write harmonic_mean: 1",
            )


class TwoRounds(TableStage):
    """Means of this round and of the next one.

    Who has made a commit of this round contributes to the next. It keeps both tables,
    and who has made a commit.
    """

    def start(self, problem: HorizontalProblem, weights: Array) -> object:
        empty = super().start(problem, weights)
        return empty, empty, jnp.zeros(problem.num_clients, bool)

    def take(
        self,
        kept: tuple[ClientTable, ClientTable, Bool[Array, " K"]],
        row: ServerRow,
        message: Vector,
    ) -> tuple[object, Vector]:
        (current, following, served), client = kept, row.event.worker[0]
        again = served.at[client].get(mode="fill", fill_value=False)
        current = current.averaged(jnp.where(again, NO_WORKER, client), message)
        later = jnp.where(again, client, NO_WORKER)
        following = following.averaged(later, message)
        direction = current.sum / row.problem.num_clients
        commits = row.event.kind == Kind.COMMIT
        served = served.at[client].set(commits | again, mode="drop")
        over = served.all()
        # Not by `where`, which would choose every number of both in each row.
        current, following = jax.lax.cond(
            over, lambda: (following, current), lambda: (current, following)
        )
        return (current, following.cleared(over), served & ~over), direction


class Ringleader(TableMethod):
    """Steps by the mean over clients of means that stay for a round.

    Each client's contributions of a round are averaged, and K commits follow, in which
    each client's next arrival is added to its own mean; further arrivals are for the
    next round.

    Source: Maranjyan and Richtarik, Ringleader ASGD (2025), Algorithm 1.
    """

    kind: Literal["ringleader"] = "ringleader"
    protocols: ClassVar[tuple[str, ...]] = ("phases",)
    stage: ClassVar[type[TableStage]] = TwoRounds


class CalibratedBuffer(TableStage):
    """A buffer of changes on top of the mean of former contributions.

    It keeps every client's former contribution, zero before the first one; their mean
    at the last commit, h; and the sum and the number of the changes since.
    """

    def start(self, problem: HorizontalProblem, weights: Array) -> object:
        zeros = jnp.zeros_like(weights)
        return super().start(problem, weights), zeros, zeros, jnp.int32(0)

    def take(
        self,
        kept: tuple[ClientTable, Array, Array, Int[Array, ""]],
        row: ServerRow,
        message: Vector,
    ) -> tuple[object, Vector]:
        cache, mean, buffer, buffered = kept
        client, num_clients = row.event.worker[0], row.problem.num_clients
        there, commits = client < num_clients, row.event.kind == Kind.COMMIT
        buffer = buffer + jnp.where(there, message - cache.of(client), 0)
        cache, buffered = cache.replaced(client, message), buffered + there
        direction = mean + buffer / jnp.maximum(buffered, 1)
        return (
            cache,
            jnp.where(commits, cache.sum / num_clients, mean),
            jnp.where(commits, 0, buffer).astype(buffer.dtype),
            jnp.where(commits, 0, buffered).astype(jnp.int32),
        ), direction


class Ca2fl(TableMethod):
    """Buffers contributions less each client's former one, and adds the mean of these.

    v = h + (1/M) sum (D_i - h_i) over the M contributions of the buffer, where h is the
    mean of all clients' previous ones at the last commit; x <- x - step_size * v. D_i
    is a client's move, divided by -1: the sum of its local steps.

    Source: Wang et al., Tackling the Data Heterogeneity in Asynchronous Federated
    Learning with Cached Update Calibration (2024), Algorithm 2.
    """

    kind: Literal["ca2fl"] = "ca2fl"
    protocols: ClassVar[tuple[str, ...]] = ("buffered",)
    stage: ClassVar[type[TableStage]] = CalibratedBuffer
