"""What a job weighs, whatever algorithm says it."""

from typing import NamedTuple


class Workload(NamedTuple):
    """What one job of a client computes and sends.

    Attributes:
        upload_bytes: of its message to the server.
        download_bytes: of the server's message to the client.
        contributions_per_epoch: jobs of all clients together that make an epoch.
        steps: local steps.
        samples: over all of its steps.
        overhead_s: virtual seconds that it computes on top of what laws say, >= 0;
            slowdowns do not multiply them.
    """

    upload_bytes: int = 0
    download_bytes: int = 0
    contributions_per_epoch: float = 1
    steps: int = 1
    samples: int = 1
    overhead_s: float = 0
