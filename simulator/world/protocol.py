"""The interface of all coordination protocols."""

from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Int

from ..parts.base import LocatedError
from .answers import Asking
from .clients import Clients, Server
from .protocol_abilities import OwnSteps
from .recorders.recorder import Recorder

if TYPE_CHECKING:
    from .world import World


class Arrivals(NamedTuple):
    """Each client continues as soon as its contribution has arrived.

    Attributes:
        size: Contributions that one version applies.
        window: Virtual seconds after which it applies the arrived ones; None where
            their number counts.
        bound: Largest staleness of a contribution that is applied, commits, if any.
    """

    size: int = 1
    window: float | None = None
    bound: int | None = None


class LockStep:
    """All clients begin together, and a version applies the contributions of all."""


class Turns(NamedTuple):
    """One client after the other makes a step, always in the same order.

    Attributes:
        reads_first: Whether a client reads its next version before its own update is
            in it.
        rounds_are_commits: Whether each commit is a round; else each turn of all is.
    """

    reads_first: bool = False
    rounds_are_commits: bool = False


Rule = Arrivals | LockStep | Turns
"""The rule of a protocol without feedback on who acts when: its timeline is made by
arrays (`simulator.timelines.arrays`); others are simulated."""
Batch = Callable[[int, int], Int[np.ndarray, " S"]]
"""Sample ids of (client, job): the sampler, for protocols that need it."""
STAGES = ("idle", "read", "download", "compute", "upload")
"""Stages of a client's cycle, entries of `clients`."""


class Cadence(NamedTuple):
    """How the rows, commits and rounds of a protocol come.

    Attributes:
        width: Most workers of a row, `W`.
        num_registers: Registers that suffice: the most versions that are still read,
            and the current one.
        contributions_per_commit: Most contributions that one commit applies.
        is_steady: Whether that number is the same during all of a run.
        commits_per_round: Commits of a round; None where there are no rounds.
        turns_per_round: Rows of a round that a limit on rounds counts.
        commits_are_turns: Whether each of those rows is a commit; else a limit on
            commits counts contributions.
        commits_at_once: Commits of which none makes another one staler, as in
            `timeline.staleness`.
        reads_alike: Whether all workers of a row have read the same version.
        ends_mixed: Whether a round ends with an averaging of all, not with a commit.
        messages: Uploads and downloads that count for a contribution.
    """

    width: int
    num_registers: int
    contributions_per_commit: int = 1
    commits_per_round: int | None = None
    turns_per_round: int = 1
    commits_are_turns: bool = True
    commits_at_once: int = 1
    reads_alike: bool = False
    ends_mixed: bool = False
    messages: tuple[Fraction | int, Fraction | int] = (1, 1)
    is_steady: bool = True

    @property
    def in_rounds(self) -> bool:
        """Whether there are rounds, in which all wait for each other."""
        return self.commits_per_round is not None


class Traits(NamedTuple):
    """Properties of a protocol, for any options.

    Attributes:
        pooled: Whether all data are in one place, without clients and messages.
        has_server: Whether the scenario's `server` takes part, by its service and
            shared links.
        averages: Whether workers average their own models.
        everyone_works: Whether no clients can be selected.
        lone_jobs: Whether clients only read, compute and send, each by itself: then
            jobs may have different local steps, or be done elsewhere.
        own_registers: Whether a timeline has as many registers as it needs, each its
            own number: then runs of different timelines are not executed together.
        common_batch: Whether the parties of a vertical problem meet over one batch in
            each row.
        batch_per_round: Whether that batch is the same in all rows of a round.
    """

    pooled: bool = False
    has_server: bool = True
    averages: bool = False
    everyone_works: bool = False
    lone_jobs: bool = False
    own_registers: bool = False
    common_batch: bool = False
    batch_per_round: bool = False


class Protocol(Asking):
    """The order in which clients and server exchange messages, for any algorithm.

    The defaults hold where each arrival of a client is one row; a protocol overrides
    the others. In `play`, an adaptive one calls `world.ask`, and finds the values that
    it `asks` for in `world.answers`.
    """

    like: ClassVar[str] = ""
    """Name of a protocol with rows like these: algorithms that run on that one run on
    this one."""
    timed: ClassVar[tuple[str, ...]] = ()
    """Options in virtual seconds, which are on no law's lattice."""
    traits: ClassVar[Traits] = Traits()
    """Its properties, for any options."""
    records: ClassVar[type[Recorder]] = Recorder
    """The recorder of its clients' jobs and their outcomes."""

    @property
    def names(self) -> set[str]:
        """Names by which an algorithm may declare that it runs on this protocol."""
        return {getattr(self, "kind", ""), self.like} - {""}

    @property
    def gathers(self) -> bool:
        """Whether contributions gather at the server before a commit applies them."""
        return False

    def least_clients(self, num_clients: int, *, selected: bool) -> int:
        """Returns how many clients a further commit needs.

        Args:
            num_clients: K.
            selected: Whether rounds select only some of the present clients.
        """
        return 1

    @property
    def stops_jobs(self) -> bool:
        """Whether it stops jobs that are under way."""
        return False

    @property
    def free_rule(self) -> Rule | None:
        """Its rule without feedback on who acts when; None with feedback."""
        return None

    def cadence(self, num_clients: int, in_flight: int) -> Cadence:
        """Returns the pattern of rows, commits and rounds.

        Args:
            num_clients: K.
            in_flight: Most clients that have a job at the same time, <= K.
        """
        return Cadence(width=1, num_registers=in_flight + 1)

    def described(self, num_clients: int) -> dict[str, object]:
        """Returns its description for analysis, as plain values for manifests.

        Analysis uses these and no protocol's name. A protocol replaces what differs.

        Returns:
            `entities`: its actors; `stages` and `resources`: names with the scenario's
            entry for their durations, or none; `queues`: where jobs or contributions
            wait, except for the server's service; `queues_jobs`: whether jobs wait for
            their client after they have read; `stops_jobs`; `pooled`, `in_rounds`,
            `averages`: as in `Cadence` and `Traits`; `is_reference`: whether its time
            is no client's, so that others are compared with it; `closed_forms`:
            those of `analysis.timelines.theory` whose assumptions on the protocol hold,
            with their parameters; `symbols` and `scheduling`: sentences on the letters
            of its expressions and on the order of its events, where these are its own.
        """
        server = {"one server": "server.service"} if self.traits.has_server else {}
        service = {"service": "server.service"} if self.traits.has_server else {}
        return {
            "entities": f"{num_clients} clients (parties, workers); jobs, one after "
            f"the other for each of them",
            "stages": {stage: f"clients.{stage}" for stage in STAGES} | service,
            "resources": server,
            "queues": [],
            "queues_jobs": False,
            "pooled": self.traits.pooled,
            "stops_jobs": self.stops_jobs,
            "in_rounds": self.cadence(num_clients, num_clients).in_rounds,
            "averages": self.traits.averages,
            "is_reference": self.traits.pooled and isinstance(self, OwnSteps),
            "closed_forms": {},
        }

    def check_setting(self, clients: Clients | None, server: Server, n: int) -> None:
        """Refuses clients and servers that do not fit.

        Raises:
            LocatedError: saying where, what and what to do.
        """

    @abstractmethod
    def play(self, world: "World", recorder: Any) -> None:
        """Starts the first events.

        Args:
            world: World that is simulated.
            recorder: Receiver of reads, and of the outcome of each job.
        """


def refuse_server(kind: str, server: Server, has: str) -> None:
    """Refuses a server's queue and links for a protocol that has no server.

    Args:
        kind: Its name.
        server: The scenario's entry on the server.
        has: Its substitute for one, as a relative clause.

    Raises:
        LocatedError: It has an entry all the same.
    """
    if server != Server():
        raise LocatedError(
            f"server must not be set for the protocol {kind!r}, {has}; remove it",
        )


def refuse_selection(kind: str, clients: Clients | None, instead: str = "") -> None:
    """Refuses a selection of clients where everyone works.

    Args:
        kind: Name of the protocol.
        clients: Clients of the scenario.
        instead: What else to do than to remove it, if there is something.

    Raises:
        LocatedError: there is one.
    """
    if clients is not None and clients.selection is not None:
        raise LocatedError(
            f"clients.selection must not be set for the protocol {kind!r}, in which "
            f"everyone works; remove it{instead}",
        )


def refuse_more_than(n: int, name: str, wanted: int | None) -> None:
    """Refuses to wait for more clients than there are.

    Args:
        n: Number of clients.
        name: Name of the protocol's option.
        wanted: Value of the option.

    Raises:
        LocatedError: it is too large.
    """
    if wanted is not None and wanted > n:
        raise LocatedError(
            f"protocol.{name} must be at most the number of clients ({n}), got "
            f"{wanted}; lower it or add clients",
        )
