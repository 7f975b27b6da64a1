"""The work and the messages of a job, whatever the algorithm."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Workload:
    """The work of one job of a client, and the size of its messages.

    Attributes:
        upload_bytes: Bytes of the client's message to the server.
        download_bytes: Bytes of the server's message to the client.
        contributions_per_epoch: Jobs of all clients together that make an epoch.
        steps: Local steps.
        samples: Samples of all its steps together.
        overhead_s: Virtual seconds of computing on top of the laws' durations, >= 0;
            slowdowns do not multiply them.
    """

    upload_bytes: int = 0
    download_bytes: int = 0
    contributions_per_epoch: float = 1
    steps: int = 1
    samples: int = 1
    overhead_s: float = 0

    @property
    def parts(self) -> dict[str, Any]:
        """Numbers that a timeline's hash depends on; an overhead of 0 is left out."""
        parts = dict(vars(self))
        if not self.overhead_s:
            del parts["overhead_s"]
        return parts
