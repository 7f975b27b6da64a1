"""A recorded timeline as Chrome's trace events, for Perfetto and `chrome://tracing`.

Each run is a process, each client a thread, and the server thread 0. Times are
microseconds of virtual time.

Source: Trace Event Format (Chromium project): complete (`X`), instant (`i`) and
metadata (`M`) events.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from ..figures import gantt

MICROSECONDS = 1e6
SERVER = 0
"""Thread of the commits; clients have those of their numbers, which begin at 1."""


def events(
    run: int,
    label: str,
    jobs: pd.DataFrame,
    commits: Float[np.ndarray, " n"],
    incidents: pd.DataFrame,
    names: Sequence[str],
) -> Iterator[dict[str, Any]]:
    """Yields the trace events of one run.

    Args:
        run: Number of the run; viewers show it as a process.
        label: Name of the line.
        jobs: Jobs of the run.
        commits: Times at which versions were made, virtual seconds.
        incidents: Incidents of the run.
        names: Names of the clients, from the first to the last.
    """
    yield _named("process_name", run, SERVER, label)
    yield _named("thread_name", run, SERVER, "server")
    for client, name in enumerate(names, start=1):
        yield _named("thread_name", run, client, name)
    keys = ["client", "job"]
    more = jobs.loc[jobs["kind"] == "work", [*keys, "outcome", "read_version"]]
    table = gantt.stages(jobs, incidents).merge(more, on=keys)
    for row in table.to_dict("records"):
        start = row["start"] * MICROSECONDS
        yield {
            "name": row["stage"],
            "cat": "job",
            "ph": "X",
            "ts": start,
            "dur": row["end"] * MICROSECONDS - start,
            "pid": run,
            "tid": int(row["client"]),
            "args": {name: row[name] for name in ("job", "outcome", "read_version")},
        }
    for number, time in enumerate(commits.tolist(), start=1):
        yield _instant(f"commit {number}", "commit", time, run, SERVER)
    for row in incidents.to_dict("records"):
        name, client = str(row["incident"]), row["client"]
        thread = SERVER if pd.isna(client) else int(client)
        yield _instant(name, "incident", row["time"], run, thread)


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {
        "name": what,
        "ph": "M",
        "ts": 0,
        "pid": process,
        "tid": thread,
        "args": {"name": name},
    }


def _instant(
    name: str, kind: str, time: float, process: int, thread: int
) -> dict[str, Any]:
    return {
        "name": name,
        "cat": kind,
        "ph": "i",
        "s": "t",
        "ts": time * MICROSECONDS,
        "pid": process,
        "tid": thread,
    }
