"""How much there is to compute for the samples that a job has drawn."""

from typing import Protocol


class DrawnWork(Protocol):
    """What multiplies the computing time of a job, by its samples.

    Batches are keyed by client and job, so that they are known before the job begins.
    """

    @property
    def digest(self) -> str:
        """Hash of everything that it depends on, but the seed."""
        ...

    def of(self, client: int, job: int) -> float:
        """Returns the factor of one job, > 0."""
        ...
