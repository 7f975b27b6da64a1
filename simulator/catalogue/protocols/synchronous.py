"""Synchronous: round after round, each as long as its slowest client."""

from math import inf
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from ...files.timeline import Incident, Outcome
from ...parts.base import LocatedError
from ...parts.catalogue import AnyPart
from ...world.clients import Clients, Server
from ...world.cycle import Cycle
from ...world.protocol import Cadence, LockStep, Protocol, Traits, refuse_more_than
from ...world.recorders.recorder import Recorder
from ...world.streams import Purpose
from ...world.world import World
from .deadlines import Deadline
from .schedules import Scheduled, fewest, most, now


class Synchronous(Protocol):
    """The server waits for everyone; a round lasts as long as its slowest client.

    With `clients.selection`, each round selects as many clients as that has in flight;
    with `wait_for` as well, it selects more than it needs (over-selection):
    `in_flight: 1300` and `wait_for: 1000` select 1,300 clients in every round and keep
    the first 1,000.
    """

    kind: Literal["synchronous"] = "synchronous"
    traits: ClassVar[Traits] = Traits(lone_jobs=True, common_batch=True)
    timed: ClassVar[tuple[str, ...]] = ("deadline", "deadline_by", "timeout")
    deadline: Annotated[float, Field(gt=0)] | None = None
    """Virtual seconds after which a round ends with those who have arrived. It never
    ends an empty round, which then lasts until the first arrival; all that arrive at
    that instant count."""
    least: Annotated[int, Field(ge=1)] = 1
    """Arrivals without which a deadline ends no round; it then ends with the last of
    them (a goal, a least number and a time, as in OpenFL's cut-off)."""
    deadline_by: Annotated[Deadline, AnyPart("deadlines")] | None = None
    """Rule by which the deadline follows from arrivals, in place of `deadline`."""
    wait_for: Scheduled | None = None
    """Arrivals with which a round ends, where more are selected (over-selection)."""
    late: Literal["stop", "reject"] | None = None
    """Treatment of jobs under way at the end of a round. `stop`, usual with
    `clients.selection`: they are stopped at once, and their clients may be asked again
    in the next round. `reject`, usual where everyone is asked: they run to their end,
    their contributions are rejected when they arrive, and until then their clients
    take part in no other round, which asks fewer by their number."""
    timeout: Annotated[float, Field(gt=0)] | None = None
    """Virtual seconds after which the server stops waiting for a departed client."""

    @model_validator(mode="after")
    def _some_are_late(self) -> "Synchronous":
        if self.deadline is not None and self.deadline_by is not None:
            raise LocatedError(
                "deadline_by must be left out with deadline, which it replaces; "
                "remove one of them",
            )
        if self.least > 1 and self.deadline is None and self.deadline_by is None:
            raise LocatedError(
                f"least must be with a deadline, got {self.least} without; remove it, "
                f"or take wait_for",
            )
        if self.wait_for is not None and self.least > fewest(self.wait_for):
            raise LocatedError(
                f"least must be at most wait_for, with which a round ends, got "
                f"{self.least} and {fewest(self.wait_for)}; exchange them",
            )
        if self.late is not None and not self._ends_early:
            raise LocatedError(
                f"late must be with wait_for or deadline, without which none is, got "
                f"{self.late!r}; add one of them or remove late",
            )
        return self

    def least_clients(self, num_clients: int, *, selected: bool) -> int:
        if selected or self.deadline or self.deadline_by or self.timeout:
            return 1
        return num_clients if self.wait_for is None else fewest(self.wait_for)

    @property
    def stops_jobs(self) -> bool:
        return self.late == "stop"

    @property
    def free_rule(self) -> LockStep | None:
        return None if self._ends_early or self.timeout else LockStep()

    @property
    def _ends_early(self) -> bool:
        """Whether a round may end without some who are under way."""
        ends = (self.deadline, self.deadline_by, self.wait_for)
        return any(end is not None for end in ends)

    def described(self, num_clients: int) -> dict[str, object]:
        return super().described(num_clients) | {
            "queues": ["clients that have arrived wait for the end of the round"],
            "closed_forms": {} if self._ends_early else {"slowest": {}},
        }

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        applied = min(most(self.wait_for or in_flight), in_flight)
        return Cadence(
            width=in_flight,
            num_registers=in_flight + 1,
            contributions_per_commit=applied,
            commits_per_round=1,
            reads_alike=True,
            is_steady=self.wait_for is None or isinstance(self.wait_for, int),
        )

    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        selection = clients.selection if clients else None
        if selection and (selection.arrivals is not None or selection.refill > 1):
            name = "refill" if selection.arrivals is None else "arrivals"
            raise LocatedError(
                f"clients.selection.{name} must be left out with the protocol "
                "'synchronous', whose rounds select their own clients; remove it",
            )
        refuse_more_than(n, "wait_for", self.wait_for and most(self.wait_for))
        refuse_more_than(n, "least", self.least)

    def play(self, world: World, recorder: Recorder) -> None:
        """Starts the rounds; a row names its clients in their own order.

        A round selects everyone, or as many as the scenario's selection has in flight.
        It ends when `wait_for` of them, or all that the server still waits for, have
        arrived, or at its deadline with the arrivals so far. With fewer than `least` it
        ends after the instant in which they are as many, with all of it.
        Late clients are stopped, or rejected on arrival, and may then be selected
        again. A client whose job is lost begins it again as soon as it is back. The
        server waits for a departed client until the timeout.

        Source: VAFL, section 5; V-29. Over-selection: Bonawitz et al., Towards
        Federated Learning at Scale (2019), section 2.2.
        """
        _Rounds(self, world, recorder).start()


class _Rounds:
    def __init__(self, config: Synchronous, world: World, recorder: Recorder) -> None:
        self._config, self._world, self._recorder = config, world, recorder
        self._env = world.env
        self._round = 0
        self._open: set[int] = set()  # asked in this round, not arrived
        self._arrived: list[int] = []
        self._late: set[int] = set()  # asked in a round that is over, and not free yet
        self._pending: set[int] = set()  # asked, with the read still to come
        self._gone: set[int] = set()
        self._overdue = False
        self._watch = config.deadline_by.make() if config.deadline_by else None
        self._asked: dict[int, float] = {}  # when, by client
        self._began = self._env.now
        late = config.late or ("reject" if world.pool is None else "stop")
        self._stops = config._ends_early and late == "stop"
        self._cycle = Cycle(
            *(world, recorder.read, self._arrive, self._lose, self._left),
            selects=False,
            stops=self._stops,
            admit=self._admit if self._stops else None,
        )

    def start(self) -> None:
        pool = self._world.pool
        if pool is None:
            self._begin_round(0)
        else:
            pool.ready(self._begin_round, 0)

    def _begin_round(self, _: int) -> None:
        asked = self._select()
        self._open, self._arrived, self._overdue = set(asked), [], False
        self._began = self._env.now
        self._asked.update(dict.fromkeys(asked, self._began))
        if self._config.deadline is not None and asked:
            self._world.call_last(self._config.deadline, self._deadline, self._round)
        if self._watch is not None and asked:
            self._end_after(self._watch.begin())
        for client in asked:
            if client not in self._pending:
                self._begin(client)

    def _begin(self, client: int) -> None:
        if self._stops:
            self._pending.add(client)
        self._cycle.begin(client)

    def _admit(self, client: int) -> bool:
        """Lets a client read, unless its round has ended without it."""
        self._pending.discard(client)
        return client in self._open

    def _lose(self, client: int, outcome: Outcome) -> None:
        self._recorder.lose(client, outcome)
        if self._stops and outcome is not Outcome.STOPPED:
            self._pending.add(client)  # begins again when it is back

    def _select(self) -> list[int]:
        world, busy = self._world, self._late | self._gone
        if world.pool is None:
            return [c for c in range(world.num_clients) if c not in busy]
        asked = world.pool.choose(world.pool.in_flight - len(self._late), self._env.now)
        if not asked and not self._late:
            self._start_when_somebody_is_back()
        return sorted(asked)

    def _start_when_somebody_is_back(self) -> None:
        assert self._world.pool is not None
        back = self._world.pool.next_present()
        if back is not None:
            self._world.call_at(back, lambda _: self.start(), 0)

    def _arrive(self, client: int) -> None:
        self._recorder.arrive(client)
        took = self._env.now - self._asked[client]
        if client in self._late:
            if self._watch is not None:
                self._watch.late(took)
            self._recorder.lose(client, Outcome.REJECTED)
            self._come_back(client)
            return
        self._open.remove(client)
        self._arrived.append(client)
        if self._watch is not None:
            self._watch.arrived(took)
        if self._overdue and len(self._arrived) >= self._config.least:
            self._end_after(0)
        self._end_if_complete()

    def _end_after(self, seconds: float | None) -> None:
        """Ends the round some seconds after its begin, with all of that instant."""
        if seconds is not None:
            left = max(self._began + seconds - self._env.now, 0)
            self._world.call_last(left, self._deadline, self._round)

    def _left(self, client: int) -> None:
        if self._config.timeout is not None:
            self._world.call(self._config.timeout, self._give_up, client)

    def _give_up(self, client: int) -> None:
        self._world.note(self._env.now, client, Incident.TIMED_OUT)
        self._gone.add(client)
        self._late.discard(client)
        self._open.discard(client)
        self._end_if_complete()

    def _deadline(self, round_: int) -> None:
        if round_ == self._round:
            self._overdue = True
            if len(self._arrived) >= self._config.least:
                self._commit()

    def _end_if_complete(self) -> None:
        wanted, arrived = self._config.wait_for, len(self._arrived)
        enough = wanted is not None and arrived >= now(
            wanted, self._world, self._recorder
        )
        if self._arrived and (enough or not self._open):
            self._commit()

    def _commit(self) -> None:
        arrived = tuple(sorted(self._arrived))
        self._recorder.commit(arrived, self._round)
        self._round += 1
        self._late |= self._open
        if self._stops:
            for client in sorted(self._open):
                self._stop(client)
        for client in arrived:
            self._free(client)
        self.start()

    def _stop(self, client: int) -> None:
        """Stops a late client, unless its contribution waits for the server."""
        if self._watch is not None:
            self._watch.late(inf)
        if self._cycle.stop(client, again=False):
            delay = self._world.draw(Purpose.RESTART, client)
            if delay:
                self._world.call(delay, self._come_back, client)
                return
        elif client not in self._pending:
            return
        self._late.remove(client)
        self._free(client)

    def _come_back(self, client: int) -> None:
        self._late.remove(client)
        self._free(client)
        if not self._open and not self._arrived:
            self.start()
        elif self._world.pool is None:
            self._open.add(client)
            self._asked[client] = self._env.now
            self._begin(client)

    def _free(self, client: int) -> None:
        if self._world.pool is not None:
            self._world.pool.give_back(client)
