"""Collect: contributions computed at one model gather until a rule is satisfied."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from ....parts.base import Config, LocatedError
from ....parts.expressions import Quantity, per_client
from ....world.clients import Behaviour, Clients, Server
from ....world.laws.base import Draws, Population
from ....world.protocol import (
    Cadence,
    Protocol,
    Traits,
    refuse_more_than,
    refuse_selection,
)
from ....world.protocol_abilities import LimitsGathering
from ....world.recorders.recorder import Recorder
from ....world.streams import Streams
from ....world.world import World
from ..schedules import Scheduled, fewest, most, now
from .playing import Gathering
from .rules import AfterSeconds, AllottedJobs, Count, Enough, HarmonicMean, Quotas

RULES = ("count", "harmonic_mean", "quota", "seconds", "allotment")


class Allotment(Config):
    """Jobs of a round, allotted over the clients by their earlier durations.

    Each round they go to the clients so that the longest of all would be over first, by
    lower confidence bounds of the clients' mean times (ATA).
    """

    jobs: Annotated[int, Field(ge=1)]
    """Jobs of a round, all of which it needs."""
    spread: Annotated[float, Field(ge=0)]
    """alpha: virtual seconds by which jobs' times vary, such as twice the mean where
    they are exponential; after k rounds with n jobs of a client its bound is their mean
    less 4 e alpha (sqrt(l / n) + l / n), l = ln(2 k^2), or 0 if that is less."""


class Collect(LimitsGathering, Protocol):
    """Contributions computed at one model gather until a rule is satisfied.

    A round collects contributions at the model of the round before, and is one commit
    of all that have arrived. Contributions at an older model are not used.

    Source: Tyurin and Richtarik, Optimal Time Complexities of Parallel Stochastic
    Optimization Methods Under a Fixed Computation Model (2023), Methods 4 and 6; with
    `repeats: false`, Begunov and Tyurin, Do We Need Asynchronous SGD? (2026); with
    `filter: start`, Attia et al. (2024).

    With `max_staleness` contributions at an older model count as well. Count m, bound
    R - 1 and `late` are then one family: Ringmaster ASGD (m = 1; Algorithm 4, or 5 with
    `late: stop`), Rennala (R = 1), m-synchronous SGD (R = 1, without repeats), and
    without a bound asynchronous, buffered and t-synchronous (without repeats).
    """

    kind: Literal["collect"] = "collect"
    traits: ClassVar[Traits] = Traits(lone_jobs=True)
    timed: ClassVar[tuple[str, ...]] = ("seconds", "allotted")
    count: Scheduled | None = None
    """Contributions that end a round, as it holds when the round begins."""
    harmonic_mean: Annotated[float, Field(ge=1)] | None = None
    """Least harmonic mean of the clients' counts that ends a round; with 1, everyone
    has contributed."""
    quota: Quantity | None = None
    """Trials of each client, all of which end a round."""
    seconds: Annotated[float, Field(gt=0)] | None = None
    """Virtual seconds after which a round ends, where anything has arrived; else it
    ends with all that arrive at the instant of the first arrival."""
    allotment: Allotment | None = None
    """Jobs of a round, all of which end it, allotted for each round."""
    repeats: bool = True
    """Whether a client that has contributed starts another job of the round."""
    staleness_bound: Annotated[int, Field(ge=0)] | Literal["none"] = 0
    """Largest staleness of a contribution that counts, in commits (inclusive); `none`
    for any. Only with `count`."""
    late: Literal["reject", "stop"] = "reject"
    """Treatment of jobs that the end of a round makes too stale: their contributions
    are rejected when they arrive, or the jobs are stopped at once."""
    fastest: Annotated[int, Field(ge=1)] | None = None
    """Number of clients that take part: those of the shortest median computing time
    by their laws; by default everyone."""
    allotted: Quantity | None = None
    """Virtual seconds from the read of a job after which it is stopped; it then counts
    as a trial of `quota`."""
    filter: Literal["read", "start"] = "read"
    """The instant that must be within a round for a contribution to count: the read of
    its model or, as in asynchronous mini-batching, the start of its computing, which is
    later where the model takes time to arrive; such a contribution is stale."""

    @model_validator(mode="after")
    def _one_rule(self) -> "Collect":
        given = [name for name in RULES if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"must have exactly one of {', '.join(RULES)}, got "
                f"{' and '.join(given) or 'none'}; write for example count: 10"
            )
        if self.allotted is not None and self.quota is None:
            raise LocatedError(
                "allotted must be with quota, the trials that it gives a time to; "
                "add it or remove allotted",
            )
        if not self.repeats and given[0] in ("harmonic_mean", "quota", "allotment"):
            raise LocatedError(
                f"repeats must be true with {given[0]}, which counts the jobs of each "
                f"client, got false; remove it",
            )
        return self

    @model_validator(mode="after")
    def _bounds_counts(self) -> "Collect":
        if self.staleness_bound == 0:
            return self
        wrong = "a rule other than count" if self.count is None else ""
        if self.filter != "read":
            wrong = "filter: start"
        elif self.staleness_bound == "none" and self.late == "stop":
            wrong = "late: stop, which it leaves nothing to stop"
        if wrong:
            raise LocatedError(
                f"staleness_bound must be 0 with {wrong}, got {self.staleness_bound}; "
                f"remove one of them",
            )
        return self

    @property
    def gathers(self) -> bool:
        return True

    @property
    def stops_jobs(self) -> bool:
        return self.late == "stop" or self.allotted is not None

    def described(self, num_clients: int) -> dict[str, object]:
        waits = "contributions at the server, until the round's rule is met"
        return super().described(num_clients) | {"queues": [waits]}

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        """Returns the pattern of rows: one per contribution, the round's last a commit.

        A round that ends by the clock or by a mean of counts has no fixed number of
        contributions; it counts as one of each client.
        """
        asked = min(self.fastest or num_clients, num_clients)
        return Cadence(
            width=1,
            num_registers=in_flight + 1,
            contributions_per_commit=self.most_gathered(num_clients) or asked,
            commits_per_round=1,
            is_steady=self.count is None or isinstance(self.count, int),
        )

    def most_gathered(self, num_clients: int) -> int | None:
        if self.allotment is not None:
            return self.allotment.jobs
        if self.quota is not None:
            return sum(self._quotas(num_clients))
        return self.count and most(self.count)

    def fewest_gathered(self, num_clients: int) -> int | None:
        return fewest(self.count) if self.count else self.most_gathered(num_clients)

    def least_clients(self, num_clients: int, *, selected: bool) -> int:
        if self.quota is not None:
            return sum(own > 0 for own in self._quotas(num_clients))
        if self.count is not None and not self.repeats:
            return fewest(self.count)
        return 1 if self.harmonic_mean is None else num_clients

    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        over = ", or take the protocol synchronous with wait_for, which asks that many "
        over += "clients in each round and stops who is late"
        first = self.count is not None and not self.repeats
        refuse_selection(self.kind, clients, over if first else "")
        refuse_more_than(n, "fastest", self.fastest)
        if not self.repeats:
            wanted = self.count and most(self.count)
            refuse_more_than(min(self.fastest or n, n), "count", wanted)
        if self.quota is not None:
            least = min(self._quotas(n))
            if least < 0 or sum(self._quotas(n)) == 0:
                raise LocatedError(
                    "protocol.quota must be whole numbers >= 0 that are not all 0, got "
                    f"{least}; change it",
                )
        if self.allotted is not None:
            shortest = min(map(float, per_client(self.allotted, n, "allotted")))
            if not shortest > 0:
                raise LocatedError(
                    f"protocol.allotted must be > 0, got {shortest}; change it",
                )

    def play(self, world: World, recorder: Recorder) -> None:
        """Starts the first round.

        At the end of a round, clients that have waited for it or were stopped begin in
        their own order. A client whose job is lost begins it again as soon as it is
        back. An arrival at the very end of a round is in time.
        """
        n = world.num_clients
        asked = list(range(n))
        if self.fastest is not None:
            medians = [each for group in world.groups for each in group.medians()]
            asked = sorted(sorted(asked, key=lambda c: (medians[c], c))[: self.fastest])
        allotted = None
        if self.allotted is not None:
            allotted = [float(s) for s in per_client(self.allotted, n, "allotted")]
        enough = self._rule(n, asked, world, recorder)
        Gathering(self, asked, enough, allotted, world, recorder).start()

    def expected_batch(self, clients: Clients, num_clients: int, seed: int) -> float:
        """Returns the mean number of trials of a round that are in time, by the laws.

        Args:
            clients: Clients of the scenario.
            num_clients: How many they are.
            seed: Seed of the run.

        Raises:
            LocatedError: Trials are not limited, or their chances are not known.
        """
        if self.quota is None or self.allotted is None:
            raise LocatedError(
                "algorithm.divisor must be left out if no trial is cut off, got "
                "'expected'; add protocol.quota and protocol.allotted",
            )
        allotted = [
            float(s) for s in per_client(self.allotted, num_clients, "allotted")
        ]
        quotas = self._quotas(num_clients)
        return expected_trials_in_time(clients, quotas, allotted, seed)

    def _rule(
        self, num_clients: int, asked: list[int], world: World, recorder: Recorder
    ) -> Enough:
        count = self.count
        if count is not None:
            return Count(lambda: now(count, world, recorder))
        if self.harmonic_mean is not None:
            return HarmonicMean(self.harmonic_mean, asked)
        if self.allotment is not None:
            return AllottedJobs(self.allotment.jobs, self.allotment.spread, asked)
        if self.quota is not None:
            return Quotas(self._quotas(num_clients), asked)
        return AfterSeconds()

    def _quotas(self, num_clients: int) -> list[int]:
        assert self.quota is not None
        found = per_client(self.quota, num_clients, "protocol.quota")
        if any(value != int(value) for value in found):
            raise LocatedError(
                f"protocol.quota must be whole numbers, got {float(found[0]):g}; round "
                f"it, for example by floor(...)",
            )
        return [int(value) for value in found]


GRID = 1_000_000
"""Values of a law's quantile function that its probability is counted by, to 1e-6."""


def expected_trials_in_time(
    clients: Clients, quotas: Sequence[int], allotted: Sequence[float], seed: int
) -> float:
    """Returns sum_i p_i B_i, p_i being the chance that a job of client i is in time.

    Args:
        clients: Clients whose jobs consist of computing alone.
        quotas: B_i, trials of each client.
        allotted: Virtual seconds of each client's trial.
        seed: Seed of the run, on which parameters that are drawn depend.

    Raises:
        LocatedError: A job consists of more than computing, whose chance is not known;
            or no trial of any client can be in time.

    Source: Maranjyan, Omar and Richtarik, MindFlayer SGD (2025), section 3.
    """
    uniform = (np.arange(GRID) + 0.5) / GRID
    total, nearest = 0.0, (np.inf, 0, 0.0)
    for first, size, behaviour in clients.behaviours(len(quotas)):
        _refuse_other_stages(behaviour, clients)
        assert behaviour.compute is not None
        stage = "clients.compute"
        law = behaviour.compute.make(Population(size, Streams(seed), first, stage))
        for own in range(size):
            times = np.asarray(law.draw(Draws(uniform, own, 0), None))
            client, least = first + own, float(times.min())
            total += float(np.mean(times <= allotted[client])) * quotas[client]
            if quotas[client]:
                nearest = min(nearest, (least - allotted[client], client, least))
    if not total:
        _, client, least = nearest
        raise LocatedError(
            f"protocol.allotted must be enough for a trial of some client, got "
            f"{allotted[client]:g} s for client {client + 1}, whose shortest trial "
            f"takes {least:g} s; raise it",
        )
    return total


def _refuse_other_stages(behaviour: Behaviour, clients: Clients) -> None:
    others = ("read", "power", "upload", "download", "crashes", "loss", "leave")
    there = [name for name in others if getattr(behaviour, name) is not None]
    if behaviour.compute_per != "job":
        there.append("compute_per")
    if clients.slowdowns:
        there.append("slowdowns")
    if there:
        raise LocatedError(
            "algorithm.divisor must be a number if jobs have more than a law of "
            f"computing, got 'expected' with clients.{there[0]}; give sum_i p_i B_i",
        )
