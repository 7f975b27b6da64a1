"""What several tests need."""

from typing import Any

import numpy as np

from simulator.protocols.played import Played, Traffic
from simulator.scenario.scenario import Clients, Stop
from simulator.timeline import Jobs, Rows, StopReason


def played(
    protocol: Any, clients: Clients | None, num_clients: int, seed: int = 1, **stop: Any
) -> Played:
    """Returns a timeline whose messages weigh nothing in particular."""
    return Played(
        clients, protocol, num_clients, seed, Stop(**stop), Traffic(4, 4, num_clients)
    )


def everything(plan: Played, chunk: int = 4096) -> tuple[Rows, Jobs, StopReason | None]:
    """Returns all rows and jobs of a timeline, and why it ended."""
    chunks = list(plan.chunks(chunk))
    assert all(c.stop is None for c in chunks[:-1])
    rows = Rows(*map(np.concatenate, zip(*(c.rows for c in chunks), strict=True)))
    jobs = Jobs(*map(np.concatenate, zip(*(c.jobs for c in chunks), strict=True)))
    return rows, jobs, chunks[-1].stop
