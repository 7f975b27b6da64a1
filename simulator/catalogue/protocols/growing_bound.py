"""Ringmaster without parameters: a staleness bound that grows with the commits."""

from itertools import takewhile
from math import isqrt
from typing import ClassVar, Literal

from ...files.timeline import Outcome
from ...world.cycle import Cycle
from ...world.protocol import Protocol, Traits
from ...world.recorders.recorder import Recorder
from ...world.world import World


class GrowingBound(Protocol):
    """Each arrival is a commit, if it is younger than the root of all commits so far.

    After k commits a contribution of staleness below R_k = max(1, floor(sqrt(k)))
    counts. Others are treated as in the protocol `asynchronous`, whose bound does not
    change. So early, when steps are long, only the fastest count, and later all.

    Source: Maranjyan et al., Ringmaster LMO: Asynchronous Linear Minimization Oracle
    Momentum Method (2026), the parameter-agnostic thresholds, by its authors' code
    (`ParameterAgnosticRingmasterMuon` of vectozavr/ringmaster-lmo).
    """

    kind: Literal["growing_bound"] = "growing_bound"
    like: ClassVar[str] = "asynchronous"
    traits: ClassVar[Traits] = Traits(lone_jobs=True)
    beyond: Literal["reject", "stop"] = "reject"
    """Treatment of arrivals that are too stale: they are rejected, or their jobs are
    stopped as soon as that is sure."""

    @property
    def stops_jobs(self) -> bool:
        return self.beyond == "stop"

    def described(self, num_clients: int) -> dict[str, object]:
        return super().described(num_clients) | {"queues": []}

    def play(self, world: World, recorder: Recorder) -> None:
        reads: dict[int, int] = {}  # of jobs under way: client, version, in order

        def too_stale(version: int) -> bool:
            return recorder.version - version >= max(isqrt(recorder.version), 1)

        def read(client: int) -> None:
            recorder.read(client)
            reads[client] = recorder.version

        def lose(client: int, outcome: Outcome) -> None:
            reads.pop(client, None)
            recorder.lose(client, outcome)

        def arrive(client: int) -> None:
            if too_stale(reads.pop(client)):
                recorder.lose(client, Outcome.REJECTED)
            else:
                recorder.commit((client,))
            cycle.again(client)
            if self.stops_jobs:
                for each in list(takewhile(lambda c: too_stale(reads[c]), reads)):
                    cycle.stop(each)

        cycle = Cycle(world, read, arrive, lose, stops=self.stops_jobs)
        cycle.start()
