"""Writes timelines into a folder: rows, jobs and incidents, with a manifest. No JAX.

The folder is a study without numerics, which `trace.load` reads, and which a scenario
replays by `timeline: {replay: FOLDER}`.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simulator import playing
from simulator.protocols.played import Played, Traffic
from simulator.scenario.setting import Setting
from simulator.scenario.study import Run, expand
from simulator.timeline import (
    NO_COMMIT,
    NO_WORKER,
    Chunk,
    Incident,
    Incidents,
    Jobs,
    Kind,
    Outcome,
    Rows,
    StopReason,
    staleness,
)
from simulator.trace import COLUMNS, Study, Words, Writer, compact, load, provenance
from simulator.trace import write_manifest as write

PAIRS = 65_536
"""Most workers of all rows of a chunk together."""
LIBRARIES = ("numpy", "scipy", "simpy", "stalesim")
Progress = Callable[[float], None]
"""Called with the fraction of all runs that is played."""


class Source(NamedTuple):
    """A timeline that is to be written.

    Attributes:
        entry: what the manifest says of its run beforehand.
        chunks: of the timeline.
        traffic: what a contribution sends.
        horizon: virtual seconds at which the run ends at the latest, or None.
        names: columns of the table `clients` that say who each is.
    """

    entry: dict[str, Any]
    chunks: Iterator[Chunk]
    traffic: Traffic
    horizon: float | None = None
    names: Mapping[str, Words] = {}


def record(
    scenario: Setting, folder: str | Path, progress: Progress = lambda _: None
) -> Study:
    """Plays the world of every run of a scenario and writes what happens.

    Args:
        scenario: of either kind.
        folder: new or empty.
        progress: hears the fraction that is played.

    Raises:
        UserError: something in the scenario, the data or the folder is wrong.
    """
    sources = [_source(run, playing.timeline(run)) for run in expand(scenario)]
    return write_all(
        Path(folder), scenario.model_dump(mode="json"), sources, progress=progress
    )


def write_all(
    folder: Path,
    scenario: dict[str, Any],
    sources: list[Source],
    *,
    progress: Progress = lambda _: None,
) -> Study:
    """Writes timelines as they come, run after run; a kill leaves readable parts.

    Args:
        folder: new or empty.
        scenario: for the manifest; its `name` is the study's.
        sources: the timelines.
        progress: hears the fraction that is written.

    Raises:
        UserError: a timeline cannot be played, or the folder cannot be written.
    """
    manifest = {
        "kind": "timeline",
        "name": scenario["name"],
        "source": scenario.get("source", ""),
        "question": scenario.get("question", ""),
        "status": "incomplete",
        "interrupted": False,
        "scenario": scenario,
        "runs": [source.entry for source in sources],
        **provenance(LIBRARIES),
    }
    write(folder, manifest)
    writer = Writer(folder, "timeline")
    try:
        for number, source in enumerate(sources):
            done = number / len(sources)
            for part in _write_run(source, writer):
                progress(done + part / len(sources))
            write(folder, manifest)
    except KeyboardInterrupt:
        writer.flush()
        manifest["interrupted"] = True
        write(folder, manifest)
        raise
    writer.flush()
    compact(folder)
    manifest["status"] = "complete"
    write(folder, manifest)
    return load(folder)


def _source(run: Run, played: Played) -> Source:
    traffic = played.traffic
    entry = {
        **run.identity,
        "protocol": run.scenario.protocol.kind,
        "num_clients": played.num_clients,
        "width": played.width,
        "num_registers": played.num_registers,
        "commits_at_once": played.commits_at_once,
        "timeline": played.digest,
        "upload_bytes": traffic.upload_bytes,
        "download_bytes": traffic.download_bytes,
        "stop_reason": "the run has not ended",
        "stop": "incomplete",
        "scenario": run.scenario.model_dump(mode="json"),
    }
    chunks = played.chunks(max(1, PAIRS // played.width))
    return Source(entry, chunks, traffic, played.stop.time, played.names)


def _write_run(source: Source, writer: Writer) -> Iterator[float]:
    """Writes one timeline; yields its fraction, and completes its entry."""
    begun = time.perf_counter()
    entry, rows_written, commits, contributions = source.entry, 0, 0, 0
    last, reason = 0.0, StopReason.INTERRUPTED
    goal = entry.get("scenario", {}).get("stop", {}).get("commits")
    tally = _Tally(entry["num_clients"], entry["commits_at_once"])
    for chunk in source.chunks:
        rows = chunk.rows
        tally.add(chunk.jobs)
        writer.append("rows", _row_columns(entry["run"], rows, rows_written))
        writer.append("jobs", _job_columns(entry["run"], chunk.jobs, source.traffic))
        writer.append("incidents", _incident_columns(entry["run"], chunk.incidents))
        rows_written += rows.time.size
        present = rows.worker != NO_WORKER
        applies = np.isin(rows.kind, (Kind.COMMIT, Kind.CONTRIBUTE))
        contributions += int(present[applies].sum())
        commits += int((rows.kind == Kind.COMMIT).sum())
        if rows.time.size:
            last = float(rows.time[-1])
        reason = chunk.stop or reason
        fractions = (last / source.horizon if source.horizon else 0, 0)
        yield min(1.0, max(*fractions, commits / goal if goal else 0))
    writer.append("clients", tally.columns(entry["run"]) | dict(source.names))
    at_horizon = reason is StopReason.TIME and source.horizon is not None
    entry.update(
        stop=reason.name.lower(),
        stop_reason=reason.value,
        commits=commits,
        contributions=contributions,
        virtual_s=source.horizon if at_horizon else last,
        elapsed_s=time.perf_counter() - begun,
    )


class _Tally:
    """Counts what each client did in a run."""

    def __init__(self, num_clients: int, at_once: int) -> None:
        self._at_once = at_once
        self._jobs, self._applied = np.zeros((2, num_clients), np.int64)
        self._total, self._largest = np.zeros((2, num_clients), np.int64)

    def add(self, jobs: Jobs) -> None:
        """Adds jobs that have ended, or were under way at the end."""
        np.add.at(self._jobs, jobs.client, 1)
        applied = jobs.commit != NO_COMMIT
        client, read = jobs.client[applied], jobs.read_version[applied]
        age = staleness(jobs.commit[applied] - 1, read, self._at_once)
        np.add.at(self._applied, client, 1)
        np.add.at(self._total, client, age)
        np.maximum.at(self._largest, client, age)

    def columns(self, run: int) -> dict[str, Any]:
        """Returns the table `clients` of a run."""
        size = self._jobs.size
        with np.errstate(invalid="ignore"):
            mean = self._total / self._applied
        return {
            "run": np.full(size, run, np.int32),
            "client": np.arange(size, dtype=np.int32),
            "num_jobs": self._jobs,
            "num_applied": self._applied,
            "staleness_mean": mean,
            "staleness_max": self._largest,
        }


def _row_columns(run: int, rows: Rows, first: int) -> dict[str, Any]:
    """Returns one row per worker of each row, and one where nobody takes part."""
    present = rows.worker != NO_WORKER
    present[:, 0] = True
    row, place = np.nonzero(present)
    columns: dict[str, Any] = {
        "run": np.full(row.size, run, np.int32),
        "row": first + row,
        "place": place.astype(np.int32),
    }
    for name, values in rows._asdict().items():
        columns[name] = values[row, place] if values.ndim == 2 else values[row]
    columns["kind"] = Words(columns["kind"], tuple(kind.name for kind in Kind))
    return columns


def _job_columns(run: int, jobs: Jobs, traffic: Traffic) -> dict[str, Any]:
    """Returns jobs as the trace has them; a message counts even if it weighs nothing.

    A replay needs to know how often a client sent.
    """
    columns: dict[str, Any] = {"run": np.full(jobs.client.size, run, np.int32)}
    columns |= jobs._asdict()
    refresh, uploads = columns.pop("refresh"), columns.pop("uploads")
    downloads = (refresh == 0).astype(np.int32)
    columns |= {
        "kind": Words(refresh, ("work", "refresh")),
        "outcome": Words(jobs.outcome, tuple(outcome.name for outcome in Outcome)),
        "upload_messages": uploads,
        "download_messages": downloads,
        "upload_bytes": uploads.astype(np.int64) * traffic.upload_bytes,
        "download_bytes": downloads.astype(np.int64) * traffic.download_bytes,
    }
    return {name: columns[name] for name in COLUMNS["jobs"]}


def _incident_columns(run: int, incidents: Incidents) -> dict[str, Any]:
    columns: dict[str, Any] = {"run": np.full(incidents.time.size, run, np.int32)}
    columns |= incidents._asdict()
    names = tuple(incident.name for incident in Incident)
    return columns | {"incident": Words(incidents.incident, names)}
