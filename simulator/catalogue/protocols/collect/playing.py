"""The rounds of `collect`, played on SimPy."""

from math import inf
from typing import TYPE_CHECKING

from ....files.timeline import Outcome
from ....world.cycle import Cycle
from ....world.recorders.recorder import Recorder
from ....world.world import World
from .rules import Enough

if TYPE_CHECKING:
    from .collect import Collect


class Gathering:
    """Rounds, each a commit of contributions that are not too stale for it.

    Args:
        config: The protocol.
        chosen: Clients that are selected, in order.
        enough: Rule that ends a round.
        allotted: Virtual seconds of a client's job; None where it takes its time.
        world: World that is simulated.
        recorder: Receiver of reads, and of the outcome of each job.
    """

    def __init__(
        self,
        config: "Collect",
        chosen: list[int],
        enough: Enough,
        allotted: list[float] | None,
        world: World,
        recorder: Recorder,
    ) -> None:
        self._config, self._world, self._recorder = config, world, recorder
        self._chosen, self._enough, self._allotted = chosen, enough, allotted
        bound = config.staleness_bound
        self._bound = inf if bound == "none" else bound
        self._env, self._round = world.env, 0
        self._waiting: set[int] = set()  # asked, and done with this round
        self._overdue, self._began = False, self._env.now
        self._cycle = Cycle(
            *(world, self._read, self._arrive, recorder.lose),
            selects=False,
            stops=config.stops_jobs,
        )

    def start(self) -> None:
        """Starts the first round."""
        self._begin_round()
        for client in self._chosen:
            self._next(client)

    def _begin_round(self) -> None:
        self._enough.begin()
        self._overdue, self._began = False, self._env.now
        if self._config.seconds is not None:
            self._world.call_last(self._config.seconds, self._time_is_up, self._round)

    def _read(self, client: int) -> None:
        self._recorder.read(client)
        if self._allotted is not None:
            then = self._cycle.alive(client, self._give_up)
            self._world.call_last(self._allotted[client], then, client)

    def _arrive(self, client: int) -> None:
        recorder, now = self._recorder, self._env.now
        recorder.arrive(client)
        if self._enough.watches:
            ends = self._world.seconds([recorder.read_time(client), now])
            self._enough.took(client, float(ends[1] - ends[0]))
        if not self._in_round(client):
            recorder.lose(client, Outcome.REJECTED)
            self._next(client)
        elif self._enough.tried(client, arrived=True):
            recorder.commit((client,), self._round)
            self._waiting.add(client)
            self._end_round()
        else:
            recorder.contribute(client, self._round)
            if self._overdue:  # all of this instant count, and wait for the next round
                self._world.call_last(0, self._time_is_up, self._round)
            self._next(client, again=self._config.repeats and not self._overdue)

    def _in_round(self, client: int) -> bool:
        """Whether a client's job belongs to this round.

        By their starts, one does whose model was under way when the round began.
        """
        timing = self._world.timing[client]
        if self._config.filter == "read" or timing is None:
            return not self._is_too_stale(client)
        return timing[0] >= self._began

    def _is_too_stale(self, client: int) -> bool:
        read = self._recorder.read_version(client)
        return self._recorder.version - read > self._bound

    def _give_up(self, client: int) -> None:
        current = self._in_round(client)
        over = current and self._enough.tried(client, arrived=False)
        again = not current or self._enough.goes_on(client)
        self._cycle.stop(client, again=again and not over)
        if over:
            self._recorder.commit((), self._round)
            self._waiting.add(client)
            self._end_round()
        elif not again:
            self._waiting.add(client)

    def _next(self, client: int, *, again: bool = True) -> None:
        """Lets a client that is free work in this round, or wait for the next.

        One whose job was of an older round has not contributed to this one.
        """
        if again and self._enough.goes_on(client):
            self._cycle.begin(client)
        else:
            self._waiting.add(client)

    def _time_is_up(self, round_: int) -> None:
        if round_ != self._round:
            return
        if self._recorder.num_buffered:
            self._recorder.commit((), self._round)
            self._end_round()
        else:
            self._overdue = True

    def _end_round(self) -> None:
        self._round += 1
        self._begin_round()
        waiting, self._waiting = self._waiting, set()
        for client in self._chosen:
            if client in waiting:
                self._next(client)
            elif self._config.late == "stop" and self._is_too_stale(client):
                self._cycle.stop(client)
