"""What a job has read: what a recorder keeps of it while its worker is at another."""

from typing import Any, NamedTuple


class Reading(NamedTuple):
    """What a job has read.

    Attributes:
        job: Number of the worker's job.
        read_time: Time of its read, in the clock's unit; None without a job.
        read_version: Version that it has read, commits.
        read_slot: Register of that version; `NO_SLOT` where nothing can come of it.
    """

    job: int
    read_time: Any
    read_version: int
    read_slot: int
