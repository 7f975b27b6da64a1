"""The record between time and training: changes of the learning state, in order.

Shape letters: `T` rows, `W` workers of one row, `K` clients or workers.

A timeline comes in chunks of rows. Each version of the learning state that a client
reads is written once, when it is made, into a *register*; a register is freed when its
version is no longer current and its last reader has committed. So there are at most
jobs-in-flight + 1 registers, and a reader finds exactly the recorded version.
"""

from enum import Enum, IntEnum
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

NO_WORKER = 2**31 - 1
"""Pads the workers of a row that has fewer than `W`."""
NO_SLOT = 2**31 - 1
"""`write_slot` of a version that no worker reads."""
NO_SAMPLE = 2**31 - 1
"""Pads the samples of a job."""
NO_COMMIT = 2**63 - 1
"""`commit` of a job that was not applied; int64, and never on the device."""
IN_COMMITS = "an order of commits, each of them a virtual second"
"""Player of a timeline that has no times: the log of a real system's order."""
SERVER = NO_WORKER
"""`node` of every row whose version is the server's."""


class Kind(IntEnum):
    """The kind of a row; `_EFFECTS` has the effects of each."""

    COMMIT = 0
    CONTRIBUTE = 1
    REFRESH = 2
    AVERAGE = 3
    AVERAGE_ALL = 4
    NULL = 5
    """Nothing: fills a batch's shorter runs."""
    SEND = 6
    MERGE = 7
    READ = 8
    """A discarded job, whose client has got the model: for algorithms that remember
    clients' models."""


class Effect(NamedTuple):
    """Properties of kinds of rows, for those who count, account for or show rows.

    Attributes:
        commits: Whether a row makes a new version.
        contributes: Whether its workers' jobs are applied by it, or gathered for a
            later commit.
        samples: Whether its workers take samples.
        first_sender: Place of the first of its workers that sends a message; a worker
            before it is the one that the row serves. Messages of rows that
            contribute are contributions, all others count as further uploads.
        pairs: Whether its worker averages its model with its `peer`.
        mixes_all: Whether it mixes the models of all workers and names none.
        one_way: Whether a model goes from its second worker to its first, by way of a
            register.
        fails: Whether it is of a job of which nothing comes.
    """

    commits: Bool[np.ndarray, " T"]
    contributes: Bool[np.ndarray, " T"]
    samples: Bool[np.ndarray, " T"]
    first_sender: Int[np.ndarray, " T"]
    pairs: Bool[np.ndarray, " T"]
    mixes_all: Bool[np.ndarray, " T"]
    one_way: Bool[np.ndarray, " T"]
    fails: Bool[np.ndarray, " T"]


def _are(*kinds: Kind) -> Bool[np.ndarray, " T"]:
    return np.isin(np.arange(len(Kind)), kinds)


_EFFECTS = Effect(
    commits=_are(Kind.COMMIT),
    contributes=_are(Kind.COMMIT, Kind.CONTRIBUTE),
    samples=_are(Kind.COMMIT, Kind.CONTRIBUTE, Kind.REFRESH),
    first_sender=1 * _are(Kind.REFRESH, Kind.SEND, Kind.READ) + 2 * _are(Kind.MERGE),
    pairs=_are(Kind.AVERAGE),
    mixes_all=_are(Kind.AVERAGE_ALL),
    one_way=_are(Kind.SEND, Kind.MERGE),
    fails=_are(Kind.READ),
)
"""Column of each property, by the number of a kind."""
KINDS = tuple(kind.name for kind in Kind)
"""Names of the kinds, by their numbers, as tables have them."""
COMMITS, PAIRS, FAILS = (
    [kind.name for kind in Kind if column[kind]]
    for column in (_EFFECTS.commits, _EFFECTS.pairs, _EFFECTS.fails)
)
"""Names of the kinds of rows that make a version, of those that average pairs, and of
those of discarded jobs."""


def effects(kind: Int[np.ndarray, " T"]) -> Effect:
    """Returns each property of rows of some kinds, arrays of shape `[T]`."""
    return Effect(*(column[kind] for column in _EFFECTS))


def further_uploads(rows: "Rows", per_mixing: int = 0) -> Int[np.ndarray, " T"]:
    """Returns the messages of each row that are no contributions.

    Args:
        rows: Successive rows of one timeline.
        per_mixing: Messages of a row that mixes the models of all workers.
    """
    effect = effects(rows.kind)
    senders = (rows.worker != NO_WORKER).sum(axis=1) - effect.first_sender
    senders = np.where(effect.contributes, 0, np.maximum(senders, 0))
    return senders + np.where(effect.mixes_all, per_mixing, 0)


class Outcome(IntEnum):
    """The end of a job."""

    APPLIED = 0
    BUFFERED = 1
    REJECTED = 2
    LOST = 3
    CRASHED = 4
    IN_FLIGHT = 5
    STOPPED = 6
    """The server stopped it; its client begins again."""


class Incident(IntEnum):
    """Other events in the life of a client."""

    CRASHED = 0
    """Its job is lost."""
    REJOINED = 1
    LEFT = 2
    """It does not come back."""
    RESENT = 3
    """Its message has arrived after repeats; `messages` counts them."""
    GAVE_UP = 4
    """No repeat of its message arrived; a job that it was of is lost."""
    DUPLICATE = 5
    """Its message arrived twice; the second was not applied."""
    REJECTED = 6
    """Its contribution was too stale or too late, and was not applied."""
    TIMED_OUT = 7
    """The server stopped waiting for it."""
    STOPPED = 8
    """The server stopped its job, whose computation is lost."""
    MISSED = 9
    """A job of an open system found no place or no client, and never started."""


class StopReason(Enum):
    """Why a run ended."""

    COMMITS = "the stated number of commits was made"
    CONTRIBUTIONS = "the stated number of contributions was applied"
    ROUNDS = "the stated number of rounds was made"
    EPOCHS = "the stated number of epochs was made"
    BYTES = "the stated number of bytes was sent"
    TIME = "the stated virtual time was reached"
    TARGET = "the target was reached at an evaluation"
    PRIVACY = "a privacy budget was spent"
    STALLED = "nothing could happen any more in this world"
    RECORDING = "the recording has ended"
    DIVERGED = "the loss or the model was no longer finite"
    INTERRUPTED = "the run was interrupted"


SINCE = "no commit came after"
"""Beginning of the text on a run that had stood still."""
TIMED = (StopReason.TIME, StopReason.RECORDING)
"""Ends at a moment, and not with a row."""


class Rows(NamedTuple):
    """Rows of a timeline: changes of the learning state, in order.

    Attributes:
        time: Virtual seconds.
        kind: a `Kind`.
        node: Worker whose version advances: the server or, in gossip, a COMMIT's
            worker, an AVERAGE's initiator, a SEND's sender or a MERGE's receiver.
        worker: Workers that take part. A REFRESH names first the worker that will use
            its batch, then those that upload again; an AVERAGE its initiator, then the
            partner; a SEND and a MERGE the receiver, then the sender. None is named by
            an AVERAGE_ALL, in which all take part, and by a COMMIT that only applies
            what was contributed before.
        job: Number of each worker's job; keys its randomness.
        version: Commits applied before this row, of all workers together in gossip,
            where an averaging changes models but is no commit.
        read_version: Commits that had been applied to the state that the worker read.
        read_slot: Register of the version that it read. For an AVERAGE, the register
            for the worker's new model, or `NO_SLOT` while its job is running; for a
            MERGE's receiver too, while its sender and a SEND's have the register of the
            message, `NO_SLOT` if it is lost. For an AVERAGE_ALL, 0 in the first place
            where all registers are written, `NO_SLOT` where everyone's job is running.
        write_slot: Register that the new version is written to, or `NO_SLOT`.
        peer: Gossip partner, else `NO_WORKER`.
        round: Round of a round-based protocol.
    """

    time: Float[np.ndarray, " T"]
    kind: Int[np.ndarray, " T"]
    node: Int[np.ndarray, " T"]
    worker: Int[np.ndarray, "T W"]
    job: Int[np.ndarray, "T W"]
    version: Int[np.ndarray, " T"]
    read_version: Int[np.ndarray, "T W"]
    read_slot: Int[np.ndarray, "T W"]
    write_slot: Int[np.ndarray, " T"]
    peer: Int[np.ndarray, " T"]
    round: Int[np.ndarray, " T"]

    def slice(self, start: int, stop: int) -> "Rows":
        """Returns the rows from `start` up to, not including, `stop`."""
        return Rows(*(column[start:stop] for column in self))


class Jobs(NamedTuple):
    """Jobs that ended within a chunk, or were under way when the run ended.

    They are in the order of their ends, in any chunks; running ones come last.

    Times are virtual seconds; NaN for later events. `uploads` counts the messages that
    the client sent, repeats included.
    """

    client: Int[np.ndarray, " J"]
    job: Int[np.ndarray, " J"]
    refresh: Int[np.ndarray, " J"]
    read_time: Float[np.ndarray, " J"]
    begun_time: Float[np.ndarray, " J"]
    computed_time: Float[np.ndarray, " J"]
    sent_time: Float[np.ndarray, " J"]
    arrived_time: Float[np.ndarray, " J"]
    applied_time: Float[np.ndarray, " J"]
    read_version: Int[np.ndarray, " J"]
    commit: Int[np.ndarray, " J"]
    outcome: Int[np.ndarray, " J"]
    uploads: Int[np.ndarray, " J"]


class Incidents(NamedTuple):
    """Incidents up to the end of a chunk, in order of time, client and incident.

    Attributes:
        time: Virtual seconds.
        client: Number of the client, from 0.
        incident: An `Incident`.
        messages: Messages concerned; 1 where there are none.
    """

    time: Float[np.ndarray, " I"]
    client: Int[np.ndarray, " I"]
    incident: Int[np.ndarray, " I"]
    messages: Int[np.ndarray, " I"]


Columns = TypeVar("Columns", Jobs, Incidents)


def some(columns: Columns, mask: Bool[np.ndarray, " n"]) -> Columns:
    """Returns the jobs or incidents of a mask, without a copy if it is all of them."""
    return columns if mask.all() else type(columns)(*(each[mask] for each in columns))


NO_INCIDENTS = Incidents(np.zeros(0), *(np.zeros(0, np.int32) for _ in range(3)))


class Chunk(NamedTuple):
    """Successive rows and the jobs that ended in them.

    `stop` is set on the last chunk of a run alone; where nothing could happen after it,
    `gone` counts the clients that never come again; `question` is the time, virtual
    seconds, at which a world needs the results of all rows so far (`world.answers`).
    """

    rows: Rows
    jobs: Jobs
    stop: StopReason | None
    incidents: Incidents = NO_INCIDENTS
    question: float | None = None
    gone: int | None = None


def staleness(
    version: Int[np.ndarray, "..."],
    read_version: Int[np.ndarray, "..."],
    at_once: int | Int[np.ndarray, "..."] = 1,
) -> Int[np.ndarray, "..."]:
    """Counts the commits between a read and the use of its result.

    Args:
        version: Commits applied before the row that applies it.
        read_version: Version that was read.
        at_once: Commits of a synchronous round of workers, each with its own model.
            Each of them is a commit, but all have read the state before the round, so
            that none makes another one staler; 1 elsewhere.

    Returns:
        Commits, >= 0, of the shape of both. What was read within the round is of it.
    """
    return np.maximum(version - version % at_once - read_version, 0)


TOO_FEW = "; num_registers of the protocol's cadence must be larger"


def check(rows: Rows, num_registers: int) -> None:
    """Refuses rows that no world can have produced.

    Raises:
        ValueError: naming the first row that is wrong.
    """
    present = rows.worker != NO_WORKER
    effect = effects(rows.kind)
    earlier = np.r_[False, np.diff(rows.time) < 0] | ~np.isfinite(rows.time)
    skipped = np.r_[False, np.diff(rows.version) != effect.commits[:-1]]
    faults = {
        "goes back in time": earlier,
        "does not follow the version before it": skipped[: rows.time.size],
        "reads a version that is not made yet": (
            present & (rows.read_version > rows.version[:, None])
        ).any(axis=1),
        "averages a worker with itself or with none": effect.pairs
        & ((rows.peer == NO_WORKER) | (rows.node == rows.peer)),
        f"reads a register that does not exist{TOO_FEW}": (
            present & (rows.read_slot != NO_SLOT) & (rows.read_slot >= num_registers)
        ).any(axis=1),
        f"writes a register that does not exist{TOO_FEW}": (rows.write_slot != NO_SLOT)
        & (rows.write_slot >= num_registers),
    }
    for fault, wrong in faults.items():
        if wrong.any():
            raise ValueError(f"timeline row {int(wrong.argmax())} {fault}")
