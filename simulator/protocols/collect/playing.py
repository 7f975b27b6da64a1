"""The rounds of `collect`, played on SimPy."""

from typing import NamedTuple

from ...recorders.recorder import Recorder
from ...timeline import Outcome
from ...world.cycle import Cycle
from ...world.world import World
from .rules import Enough


class Plan(NamedTuple):
    """What the rounds of a run are.

    Attributes:
        chosen: Clients that are asked, in order.
        enough: Rule that ends a round.
        repeats: Whether a client contributes again in the same round.
        stops: Whether jobs under way are stopped when a round ends.
        seconds: Virtual seconds after which a round ends, if the clock ends it.
        allotted: Virtual seconds of a client's job; None where it takes its time.
        by_start: Whether a job counts by the start of its computing, not by its read.
        bound: Largest staleness of a contribution that counts, commits.
    """

    chosen: list[int]
    enough: Enough
    repeats: bool
    stops: bool
    seconds: float | None
    allotted: list[float] | None
    by_start: bool
    bound: float


class Gathering:
    """Rounds, each a commit of contributions that are not too stale for it."""

    def __init__(self, plan: Plan, world: World, recorder: Recorder) -> None:
        self._plan, self._world, self._recorder = plan, world, recorder
        self._env, self._round = world.env, 0
        self._waiting: set[int] = set()  # asked, and done with this round
        self._overdue, self._began = False, self._env.now
        stops = plan.stops or plan.allotted is not None
        self._cycle = Cycle(
            *(world, self._read, self._arrive, recorder.lose),
            selects=False,
            stops=stops,
        )

    def start(self) -> None:
        """Starts the first round."""
        self._begin_round()
        for client in self._plan.chosen:
            if self._plan.enough.goes_on(client):
                self._cycle.begin(client)
            else:
                self._waiting.add(client)

    def _begin_round(self) -> None:
        self._plan.enough.begin()
        self._overdue, self._began = False, self._env.now
        if self._plan.seconds is not None:
            self._world.call_last(self._plan.seconds, self._time_is_up, self._round)

    def _read(self, client: int) -> None:
        self._recorder.read(client, self._env.now)
        if self._plan.allotted is not None:
            seconds = self._plan.allotted[client]
            then = self._cycle.alive(client, self._give_up)
            self._world.call_last(seconds, then, client)

    def _arrive(self, client: int) -> None:
        recorder, now = self._recorder, self._env.now
        recorder.arrive(client, now)
        if self._plan.enough.watches:
            ends = self._world.seconds([recorder.read_time(client), now])
            self._plan.enough.took(client, float(ends[1] - ends[0]))
        if not self._in_round(client):
            recorder.lose(client, Outcome.REJECTED)
            self._next(client, again=True)
        elif self._plan.enough.tried(client, arrived=True):
            recorder.commit(now, (client,), self._round)
            self._waiting.add(client)
            self._end_round()
        else:
            recorder.contribute(now, client, self._round)
            if self._overdue:  # all of this instant count, and wait for the next round
                self._world.call_last(0, self._time_is_up, self._round)
            self._next(client, again=self._plan.repeats and not self._overdue)

    def _in_round(self, client: int) -> bool:
        """Whether a client's job belongs to this round.

        By their starts, one does whose model was under way when the round began.
        """
        timing = self._world.timing[client]
        if not self._plan.by_start or timing is None:
            return not self._is_too_stale(client)
        return timing[0] >= self._began

    def _is_too_stale(self, client: int) -> bool:
        """Whether what a client has read is older than the bound."""
        read = self._recorder.read_version(client)
        return self._recorder.version - read > self._plan.bound

    def _give_up(self, client: int) -> None:
        """Ends a trial whose time is over."""
        current = self._in_round(client)
        over = current and self._plan.enough.tried(client, arrived=False)
        again = not current or self._plan.enough.goes_on(client)
        self._cycle.stop(client, again=again and not over)
        if over:
            self._recorder.commit(self._env.now, (), self._round)
            self._waiting.add(client)
            self._end_round()
        elif not again:
            self._waiting.add(client)

    def _next(self, client: int, *, again: bool) -> None:
        """Lets a client whose job is done continue in this round, or wait for the next.

        One whose job was of an older round has not contributed to this one.
        """
        if self._plan.enough.goes_on(client) and again:
            self._cycle.begin(client)
        else:
            self._waiting.add(client)

    def _time_is_up(self, round_: int) -> None:
        if round_ != self._round:
            return
        if self._recorder.num_buffered:
            self._recorder.commit(self._env.now, (), self._round)
            self._end_round()
        else:
            self._overdue = True

    def _end_round(self) -> None:
        """Begins the next round; the new model is there."""
        self._round += 1
        self._begin_round()
        waiting, self._waiting = self._waiting, set()
        for client in self._plan.chosen:
            if client in waiting:
                if self._plan.enough.goes_on(client):
                    self._cycle.begin(client)
                else:
                    self._waiting.add(client)
            elif self._plan.stops and self._is_too_stale(client):
                self._cycle.stop(client)
