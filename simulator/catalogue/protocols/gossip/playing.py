"""Gossip: workers step by themselves and average with a neighbour."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ....world.cycle import Then
from ....world.faults import Keyed
from ....world.protocol_abilities import Draw
from ....world.streams import Purpose
from ....world.world import World
from ..graphs.base import find_senders, no_sides
from .recorder import GossipRecorder

if TYPE_CHECKING:
    from .gossip import Gossip


class Pair(NamedTuple):
    """A request; earlier ones have smaller numbers.

    Attributes:
        number: Number of the request.
        initiator: Worker that starts the exchange.
        partner: Worker that answers.
        then: Called with the initiator when the exchange is over.
    """

    number: int
    initiator: int
    partner: int
    then: Then


class Pairs:
    """Lets pairs begin their exchanges in the order of their requests.

    A request takes both of its workers or, while one of them is with another, neither,
    and waits; so no waiting worker is held, and there is no deadlock. When workers
    become free, the oldest request that can begin does.

    Args:
        num_workers: Number of workers.
        begin: Called with a pair that begins; calls `end` when its time is over.
        over: Called with a pair that ends, before its `then`.
    """

    def __init__(
        self,
        num_workers: int,
        begin: Callable[[Pair], None],
        over: Callable[[Pair], None],
    ) -> None:
        self._begin, self._over = begin, over
        self._busy = bytearray(num_workers)
        self._waiting: list[set[Pair]] = [set() for _ in range(num_workers)]
        self._number = 0

    def ask(self, initiator: int, partner: int, then: Then) -> None:
        """Requests an exchange."""
        self._number += 1
        pair = Pair(self._number, initiator, partner, then)
        if self._can_begin(pair):
            self._take(pair)
        else:
            self._waiting[initiator].add(pair)
            self._waiting[partner].add(pair)

    def end(self, pair: Pair) -> None:
        """Ends an exchange; others may begin."""
        self._over(pair)
        pair.then(pair.initiator)
        ends = pair.initiator, pair.partner
        for worker in ends:
            self._busy[worker] = 0
        for waiting in sorted(self._waiting[ends[0]] | self._waiting[ends[1]]):
            # One that began meanwhile, and took no time, waits no more.
            if waiting in self._waiting[waiting.partner] and self._can_begin(waiting):
                self._waiting[waiting.initiator].remove(waiting)
                self._waiting[waiting.partner].remove(waiting)
                self._take(waiting)

    def _can_begin(self, pair: Pair) -> bool:
        return not (self._busy[pair.initiator] or self._busy[pair.partner])

    def _take(self, pair: Pair) -> None:
        self._busy[pair.initiator] = self._busy[pair.partner] = 1
        self._begin(pair)


class Peers(ABC):
    """The common part of all ways of averaging: the workers' gradients and steps."""

    def __init__(self, world: World, recorder: GossipRecorder) -> None:
        self._world, self._recorder = world, recorder
        self._env, self._num_workers = world.env, world.num_clients
        self._sent = [0] * world.num_clients  # messages since a worker's last step
        self._round = 0

    def start(self) -> None:
        """Starts every worker's process."""
        self._world.delays.prefetch_everyone()
        for worker in range(self._num_workers):
            self._begin(worker)

    def _begin(self, worker: int) -> None:
        world = self._world
        delay = world.draw(Purpose.IDLE, worker)
        delay += world.draw(Purpose.READ, worker)
        self._world.call_after(delay, self._snapshot, worker)

    def _snapshot(self, worker: int) -> None:
        world, now = self._world, self._env.now
        job = self._recorder.read(worker)
        duration = world.computing(worker, job, now)
        duration += world.workload.overhead_s
        self._compute(duration, worker)

    def _compute(self, duration: float, worker: int) -> None:
        self._world.call(duration, self._end_gradient, worker)

    def _end_gradient(self, worker: int) -> None:
        now = self._env.now
        started = self._recorder.read_time(worker)
        self._world.timing[worker] = (started, now, now, now, 0)
        self._computed(worker)

    @abstractmethod
    def _computed(self, worker: int) -> None:
        """Continues where a worker has its gradient."""

    def _step(self, worker: int) -> None:
        self._world.budget.send(worker)
        timing = self._world.timing[worker]
        assert timing is not None
        self._world.timing[worker] = (*timing[:4], self._sent[worker])
        self._sent[worker] = 0
        self._recorder.commit((worker,), self._round)


class AllAtOnce(Peers):
    """Everyone averages at once when all have a gradient: with everyone, or neighbours.

    That takes as long as the slowest worker's uploads, which follow each other: one, or
    one to each of its neighbours.
    """

    def __init__(
        self, config: "Gossip", world: World, recorder: GossipRecorder
    ) -> None:
        super().__init__(world, recorder)
        self._config = config
        self._computing = self._stepping = self._num_workers
        self._steps_first = config.average == "all" or (
            config.order == "step_then_average"
        )
        self._uploads = [1] * self._num_workers
        if config.average == "neighbours":
            self._uploads = config.num_out(self._num_workers, drawing(world))

    def _computed(self, worker: int) -> None:
        self._sent[worker] = self._uploads[worker]
        if self._steps_first:
            self._step(worker)
        self._computing -= 1
        if not self._computing:
            self._computing = self._num_workers
            transit = self._world.transit
            slowest = max(
                sum(transit(Purpose.UPLOAD, sender) for _ in range(uploads))
                for sender, uploads in enumerate(self._uploads)
            )
            self._world.call_after(slowest, self._average, worker)

    def _average(self, last: int) -> None:
        uploads = 0 if self._config.average == "all" else sum(self._uploads)
        self._recorder.average_all(self._round, uploads)
        if self._steps_first:
            self._begin_round()
            return
        # One event each, or a run could not end between them.
        for worker in range(self._num_workers):
            self._world.call(0, self._step_in_turn, worker)

    def _step_in_turn(self, worker: int) -> None:
        self._step(worker)
        self._stepping -= 1
        if not self._stepping:
            self._stepping = self._num_workers
            self._begin_round()

    def _begin_round(self) -> None:
        self._round += 1
        for worker in range(self._num_workers):
            self._begin(worker)


def drawing(world: World) -> Draw:
    """Returns the random numbers of a run's graph."""
    return lambda number: world.streams.at(Purpose.GRAPH, 0, number)


class Pairwise(Peers):
    """Two neighbours average at a time."""

    def __init__(
        self, config: "Gossip", world: World, recorder: GossipRecorder
    ) -> None:
        super().__init__(world, recorder)
        self._config = config
        n, streams = world.num_clients, world.streams
        (self._neighbours,) = config.graph.receivers(n, drawing(world))
        senders = None
        if config.initiator != "every":
            senders = find_senders(self._neighbours)
            if senders is None and config.initiator == "sender":
                raise no_sides()
        self._initiates = [senders is None or worker in senders for worker in range(n)]
        self._partners = [Keyed(streams, Purpose.PARTNER, w) for w in range(n)]
        self._initiated = [0] * n
        self._open = [0] * n  # of gradient and averaging, where both are waited for
        self._pairs = Pairs(n, self._transfer, self._average)

    def _snapshot(self, worker: int) -> None:
        super()._snapshot(worker)
        if self._config.order == "during":
            self._open[worker] = 2
            self._ask(worker, self._end_one_of_two)

    def _computed(self, worker: int) -> None:
        match self._config.order:
            case "average_then_step":
                self._ask(worker, self._step_and_begin)
            case "step_then_average":
                self._step(worker)
                self._ask(worker, self._begin)
            case "during":
                self._end_one_of_two(worker)

    def _end_one_of_two(self, worker: int) -> None:
        self._open[worker] -= 1
        if not self._open[worker]:
            self._step_and_begin(worker)

    def _step_and_begin(self, worker: int) -> None:
        self._step(worker)
        self._begin(worker)

    def _ask(self, worker: int, then: Then) -> None:
        """Averages with a random neighbour, where this worker is one that asks."""
        if not self._initiates[worker]:
            then(worker)
            return
        around, position = self._neighbours[worker], self._initiated[worker]
        number = self._partners[worker].at(position)
        self._initiated[worker] = position + 1
        self._pairs.ask(worker, around[int(number * len(around))], then)

    def _transfer(self, pair: Pair) -> None:
        for worker in (pair.initiator, pair.partner):
            self._sent[worker] += 1
        delay = self._world.transit(Purpose.UPLOAD, pair.initiator)
        self._world.call_after(delay, lambda _: self._pairs.end(pair), pair.initiator)

    def _average(self, pair: Pair) -> None:
        self._recorder.average(pair.initiator, pair.partner)
