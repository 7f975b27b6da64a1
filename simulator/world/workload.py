"""The work and the messages of a job, whatever the algorithm."""

from dataclasses import dataclass
from typing import Literal

from .streams import Purpose

Unit = Literal["job", "step", "sample"]


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
        own_steps: Local steps of each client's job, K numbers; empty where all clients
            make `steps`.
        own_samples: Samples of each client's job; empty where all have `samples`.
    """

    upload_bytes: int = 0
    download_bytes: int = 0
    contributions_per_epoch: float = 1
    steps: int = 1
    samples: int = 1
    overhead_s: float = 0
    own_steps: tuple[int, ...] = ()
    own_samples: tuple[int, ...] = ()

    @property
    def samples_per_job(self) -> int | list[int]:
        """Samples of a job: one number for all clients, or one for each."""
        return list(self.own_samples) or self.samples

    @property
    def parts(self) -> dict[str, object]:
        """Numbers that a timeline's hash depends on."""
        return dict(vars(self))

    def message_bytes(self, way: Purpose) -> int:
        """Returns the bytes of a message, by its way: `UPLOAD` or `DOWNLOAD`."""
        return self.upload_bytes if way is Purpose.UPLOAD else self.download_bytes

    def amount(self, unit: Unit, client: int) -> float:
        """Returns how many units of computing time a job of a client has.

        Args:
            unit: Unit of a draw of computing time.
            client: Number of the client, from 0.
        """
        if unit == "job":
            return 1
        own, usual = (
            (self.own_steps, self.steps)
            if unit == "step"
            else (self.own_samples, self.samples)
        )
        return own[client] if own else usual
