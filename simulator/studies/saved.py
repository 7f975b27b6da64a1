"""Writes timelines into a folder with a manifest: `tables` of them. No JAX.

The folder is a study without numerics, which `trace.load` reads, and which a scenario
replays by `timeline: {replay: FOLDER}`.
"""

import shutil
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from ..engine.of_run import timeline
from ..engine.row_waves import CriticalPath
from ..files import inputs
from ..files.job_steps import JobSteps
from ..files.study import (
    COLUMNS,
    DISK,
    Categorical,
    Study,
    Writer,
    is_world,
    provenance,
)
from ..files.study.disk import LOCK, PARTIAL, locked
from ..files.study.manifest import NAME, Manifest, Read, read_manifest
from ..files.study.study import journal_session
from ..files.summary import Summary
from ..files.timeline import NO_WORKER, TIMED, Chunk, StopReason, effects
from ..parts.errors import StudyError
from ..parts.json_text import Tree
from ..scenario.setting import BaseScenario
from ..scenario.study import Run, expand
from ..timelines.base import Ending, RunTimeline
from ..timelines.kept import Statistics, Tables, WholeRecord
from ..world.workload import Workload
from .session import StudySession

PAIRS = 65_536
"""Most workers of all rows of a chunk together."""
LIBRARIES = ("numpy", "scipy", "simpy", "stalesim")
LEFT = {LOCK, NAME, f"{NAME}{PARTIAL}", *COLUMNS}
"""Names that a timeline that was cut short may have left in its folder."""
Progress = Callable[[float], None]
"""Called with the fraction of all runs that is timeline."""


class WorldSource(Protocol):
    """A run of a world, to be written."""

    @property
    def entry(self) -> Tree:
        """Entry of its run in the manifest."""
        ...

    def write(self, writer: Writer, *, whole: bool) -> Iterator[float]:
        """Writes it; yields the fraction that is written, and completes its entry."""
        ...


class TimelineSource(NamedTuple):
    """A timeline, to be written.

    Attributes:
        entry: Entry of its run in the manifest, before it is written.
        chunks: Returns the chunks of the timeline, from its start.
        workload: Work and messages of a contribution.
        horizon: Virtual seconds at which the run ends at the latest, or None.
        names: Columns of the table `clients` that name each client.
        job_steps: Local steps of each job, where they change.
        least: Clients without which there is no further commit.
    """

    entry: Tree
    chunks: Callable[[], Iterator[Chunk]]
    workload: Workload
    horizon: float | None = None
    names: Mapping[str, Categorical] = {}
    job_steps: JobSteps | None = None
    least: int = 1

    def write(self, writer: Writer, *, whole: bool) -> Iterator[float]:
        """Writes the timeline; yields its fraction, and completes its entry."""
        started = time.perf_counter()
        entry, names = self.entry, dict(self.names)
        sizes = self.workload.upload_bytes, self.workload.download_bytes
        run, number = entry["run"], entry["num_clients"]
        at_once, groups = entry["commits_at_once"], names.get("client_group")
        if whole:
            summary = Summary(number, 1, at_once, start_s=0.0)
            steps = self.job_steps
            tables: Tables = WholeRecord(run, summary, sizes, names, writer, steps)
        else:
            summary = Summary(number, entry["in_flight"], at_once, groups)
            tables = Statistics(run, summary, names, writer)
        ends = yield from _take_up(self, tables)
        if (again := tables.again()) is not None:
            tables = again
            ends = yield from _take_up(self, tables)
        more = tables.finish(ends["virtual_s"])
        entry.update(ends, **more, elapsed_s=time.perf_counter() - started)
        entry["rows"] = writer.rows.get(entry["run"], {})


def record(
    scenario: BaseScenario,
    folder: str | Path,
    progress: Progress = lambda _: None,
    made: Callable[[Run], RunTimeline] = timeline,
) -> Study:
    """Simulates the world of every run of a scenario, and writes the timelines.

    Raises:
        UserError: something in the scenario, the data or the folder is wrong.
    """
    runs = expand(scenario)
    tree = scenario.model_dump(mode="json")
    read = inputs.collect(run.scenario for run in runs)
    with inputs.held(read):
        sources = sources_of(scenario, made=made)
        told = inputs.manifest_entries(read)
        return write_all(Path(folder), tree, sources, told, progress=progress)


def sources_of(
    scenario: BaseScenario,
    first: int = 0,
    made: Callable[[Run], RunTimeline] = timeline,
) -> list[TimelineSource]:
    """Returns the runs of a scenario, as worlds to be written."""
    found = [_source(run, made(run)) for run in expand(scenario)]
    for number, source in enumerate(found, first):
        source.entry["run"] = number
    return found


def write_all(
    folder: Path,
    scenario: Tree,
    sources: Sequence[WorldSource],
    read: Read,
    *,
    kind: str = "timeline",
    progress: Progress = lambda _: None,
) -> Study:
    """Writes worlds as they come, run after run; a kill leaves readable parts.

    A refusal before the simulation leaves no files.

    Args:
        folder: New or empty folder, or one that holds a timeline that was cut short,
            which is replaced.
        scenario: Scenario for the manifest; its `name` is the study's.
        sources: Runs to write.
        read: Entries of the manifest on the files that are read for them.
        kind: Entry of the manifest: `timeline`, or another kind of world.
        progress: Called with the fraction that is written.

    Raises:
        UserError: a timeline cannot be played, or the folder cannot be written, or
            holds something else.
    """
    with emptied(folder):
        return write_held(folder, scenario, sources, read, kind, progress)


@contextmanager
def emptied(folder: Path) -> Iterator[None]:
    """Holds a folder that is new, empty, or has the rest of an interrupted world.

    Raises:
        StudyError: there is something else in it, or another process writes it.
    """
    with locked(folder):
        _clear(folder)
        yield


def write_held(
    folder: Path,
    scenario: Tree,
    sources: Sequence[WorldSource],
    read: Read,
    kind: str,
    progress: Progress,
) -> Study:
    """Writes worlds as `write_all` does, into a folder that is held already."""
    manifest: Manifest = {
        "kind": kind,
        "name": scenario["name"],
        "source": scenario.get("source", ""),
        "question": scenario.get("question", ""),
        "status": "incomplete",
        "interrupted": False,
        "session": 1,
        "scenario": scenario,
        **read,
        "runs": [source.entry for source in sources],
        "parts": {},
        **provenance(LIBRARIES),
    }
    session, writer = StudySession(folder), Writer(folder, "timeline")
    session.open(manifest)
    open_ = [source.entry for source in sources]

    def note(noted: int) -> int:
        """Notes the parts that were written, and the runs that ended before."""
        if writer.next_part > noted:
            ended = [run for run in open_ if run["stop"] != "incomplete"]
            del open_[: len(ended)]
            session.note_ends({run["run"]: run for run in ended}, writer.parts)
        return writer.next_part

    noted, whole = 0, scenario.get("record") != "summary"
    try:
        for number, source in enumerate(sources):
            for part in source.write(writer, whole=whole):
                noted = note(noted)
                progress((number + part) / len(sources))
    except KeyboardInterrupt:
        writer.flush()
        note(noted)
        session.interrupt()
        raise
    except BaseException:
        # Nothing was written yet: the folder is left as it was found.
        if not any((folder / table).exists() for table in COLUMNS):
            session.undo()
        raise
    writer.flush()
    note(noted)
    return session.end()


def _clear(folder: Path) -> None:
    """Removes a timeline that was cut short; refuses everything else."""
    names = {*DISK.names(folder)}
    others = {name for name in names - LEFT if journal_session(name) is None}
    if others or (NAME in names and not _was_cut_short(folder)):
        raise StudyError(
            f"{folder}: must be a new or empty folder, but there is something; choose "
            f"another by --out"
        )
    for name in names - {LOCK}:
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _was_cut_short(folder: Path) -> bool:
    try:
        manifest = read_manifest(folder)
    except StudyError:
        return False
    return is_world(manifest) and manifest["status"] == "incomplete"


def _source(run: Run, timeline: RunTimeline) -> TimelineSource:
    if timeline.answer_log is not None:
        raise timeline.answer_log.refused()
    workload = timeline.workload
    # What is only counted may be more at once, as a sweep of all clients takes longer.
    counted = run.scenario.record == "summary"
    pairs = max(PAIRS, timeline.num_clients // 4) if counted else PAIRS
    entry = {
        **run.identity,
        "protocol": run.scenario.protocol.kind,
        "num_clients": timeline.num_clients,
        "width": timeline.width,
        "num_registers": timeline.num_registers,
        "commits_at_once": timeline.cadence.commits_at_once,
        "in_flight": timeline.in_flight,
        "timeline": timeline.digest,
        "player": timeline.made_by,
        "upload_bytes": workload.upload_bytes,
        "download_bytes": workload.download_bytes,
        **({"overhead_s": workload.overhead_s} if workload.overhead_s else {}),
        "stop_reason": "the run has not ended",
        "stop": "incomplete",
        **timeline.samples_noted,
        "facts": run.scenario.described(),
        "scenario": run.scenario.model_dump(mode="json"),
        **({"tariffs": timeline.tariffs} if timeline.tariffs else {}),
    }
    return TimelineSource(
        entry,
        partial(timeline.chunks, max(1, pairs // timeline.width)),
        workload,
        timeline.horizon,
        timeline.names,
        timeline.job_steps,
        timeline.least_clients,
    )


def _take_up(source: TimelineSource, tables: Tables) -> Generator[float, None, Tree]:
    """Goes through a timeline; yields its fraction, and returns how it ended."""
    commits, contributions, last = 0, 0, 0.0
    number = source.entry["num_clients"]
    reason, path = StopReason.INTERRUPTED, CriticalPath(number)
    ending = Ending(number, source.least)
    goal = source.entry.get("scenario", {}).get("stop", {}).get("commits")
    for chunk in source.chunks():
        tables.add(chunk)
        path.add(chunk)
        ending.add(chunk)
        rows = chunk.rows
        present = rows.worker != NO_WORKER
        effect = effects(rows.kind)
        contributions += int(present[effect.contributes].sum())
        commits += int(effect.commits.sum())
        if rows.time.size:
            last = float(rows.time[-1])
        reason = chunk.stop or reason
        fractions = (last / source.horizon if source.horizon else 0, 0)
        yield min(1.0, max(*fractions, commits / goal if goal else 0))
    at_horizon = reason in TIMED and source.horizon is not None
    return {
        "stop": reason.name.lower(),
        "stop_reason": ending.words(reason),
        "commits": commits,
        "contributions": contributions,
        "jobs": path.jobs,
        "waves": path.waves,
        "virtual_s": source.horizon if at_horizon else last,
    }
