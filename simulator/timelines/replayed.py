"""A timeline that was recorded, or imported, and is executed again."""

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf
from pathlib import Path

import numpy as np

from ..files import inputs
from ..files.reading import files
from ..files.study import Categorical, Study, load
from ..files.study.jobs import arrays, incidents_of, job_steps_of, jobs_of, numbers
from ..files.study.manifest import RunEntry
from ..files.summary import UNDER_WAY
from ..files.timeline import (
    FAILS,
    IN_COMMITS,
    NO_COMMIT,
    NO_WORKER,
    Chunk,
    Incidents,
    Jobs,
    Kind,
    Outcome,
    Rows,
    StopReason,
    check,
    effects,
    further_uploads,
)
from ..parts.base import tag
from ..parts.errors import ScenarioError
from ..parts.stop import Stop
from ..scenario.setting import Recording
from ..scenario.study import Run
from ..world.protocol import Cadence
from .base import FOREVER, RunTimeline

WIDE = ("worker", "job", "read_version", "read_slot")
"""Columns that a row has for each of its workers."""
NAMES = ("client_label", "client_group")
"""Columns of the table `clients` that identify each."""
TIMED = ("time", "recording")
"""Ends of recordings that are known to have nothing more until then."""


@dataclass(frozen=True)
class RecordedTimeline(RunTimeline):
    """The timeline of one run as a folder has it; nothing is simulated.

    It ends where the recording does, or earlier where the scenario stops earlier.

    Attributes:
        config: Place of the recording.
        study: Study that holds it.
        entry: Entry of the recorded run in the study's manifest.
        outlasted: Whether the scenario would continue when the recorded time is over.
    """

    config: Recording
    study: Study
    entry: RunEntry
    outlasted: bool

    @property
    def made_by(self) -> str:
        known = self.entry.get("player")
        return IN_COMMITS if known == IN_COMMITS else "a recording"

    @property
    def reported(self) -> str:
        return self.entry.get("feedback", "")

    def _cadence(self) -> Cadence:
        """Returns the protocol's cadence, with what the record says otherwise.

        That is its number of registers, and whether a real system's round is made of
        what was read in several.
        """
        cadence, recorded = super()._cadence(), self.entry["num_registers"]
        alike = cadence.reads_alike and self._reads_alike()
        return cadence._replace(num_registers=recorded, reads_alike=alike)

    def _reads_alike(self) -> bool:
        columns = arrays(self.study, "rows", self.entry["run"])
        same = np.diff(columns["row"]) == 0
        return not np.diff(columns["read_version"])[same].any()

    @cached_property
    def names(self) -> dict[str, Categorical]:
        found = self.study.arrow("clients", self.entry["run"])
        columns = {}
        for name in NAMES:
            if name not in found.column_names:
                continue
            column = found[name].combine_chunks()
            if not column.null_count:
                words = tuple(column.dictionary.to_pylist())
                columns[name] = Categorical(column.indices.to_numpy(), words)
        return columns

    def _digest(self) -> str:
        known = self.entry["timeline"]
        if not self._may_end_earlier:
            return known
        text = json.dumps([known, _given(self.stop)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def chunks(self, num_rows: int) -> Iterator[Chunk]:
        """Reads the recording and yields chunks of at most `num_rows` rows.

        Raises:
            DataError: the recording has changed since the study began.
            StudyError: a part of it is damaged.
            ValueError: its rows are none that a world can have produced.
        """
        rows, run = self._rows(), self.entry["run"]
        jobs, incidents = jobs_of(self.study, run), incidents_of(self.study, run)
        inputs.confirm(self.config, "timeline")
        check(rows, self.num_registers)
        reason = StopReason[self.entry["stop"].upper()]
        if reason in (StopReason.TARGET, StopReason.DIVERGED):
            reason = StopReason.RECORDING  # its own numerics have ended it
        if self._may_end_earlier:
            rows, jobs, reason = self._cut(rows, jobs, reason)
        last_commit = np.where(jobs.commit == NO_COMMIT, 0, jobs.commit)
        ended = np.maximum.accumulate(last_commit)
        end = self.horizon if reason is StopReason.TIME else None
        if end is None:
            end = float(rows.time[-1]) if rows.time.size else 0.0
        if reason is StopReason.TIME and self.outlasted:
            reason = StopReason.RECORDING
        size, job, incident = rows.time.size, 0, 0
        for start in range(0, max(size, 1), num_rows):
            stop = min(start + num_rows, size)
            final = stop == size
            made = int(rows.version[stop]) if not final else FOREVER
            job_stop = int(np.searchsorted(ended, made, side="right"))
            now = end if final else float(rows.time[stop - 1])
            seen = int(np.searchsorted(incidents.time, now, side="right"))
            yield Chunk(
                rows.slice(start, stop),
                Jobs(*(column[job:job_stop] for column in jobs)),
                reason if final else None,
                Incidents(*(column[incident:seen] for column in incidents)),
            )
            job, incident = job_stop, seen

    @property
    def _may_end_earlier(self) -> bool:
        """Says whether the scenario stops by another rule than the recording did."""
        return _rule(self.entry) != _given(self.stop)

    def _rows(self) -> Rows:
        columns = arrays(self.study, "rows", self.entry["run"])
        row, place = columns["row"], columns["place"]
        first = place == 0
        flat = {name: columns[name][first] for name in Rows._fields if name not in WIDE}
        flat["kind"] = numbers(flat["kind"], Kind)
        wide = {}
        for name in WIDE:
            spread = np.full((int(first.sum()), self.width), NO_WORKER, np.int64)
            spread[row, place] = columns[name]
            wide[name] = spread.astype(columns[name].dtype)
        return Rows(**flat, **wide)

    def _cut(
        self, rows: Rows, jobs: Jobs, reason: StopReason
    ) -> tuple[Rows, Jobs, StopReason]:
        if reason is not StopReason.STALLED:
            reason = StopReason.RECORDING
        (by_turns, most_turns), (by_contributions, most) = self.limits
        per_contribution, per_other, spendable = self.weights
        workers = (rows.worker != NO_WORKER).sum(axis=1)
        effect = effects(rows.kind)
        applied = np.cumsum(np.where(effect.contributes, workers, 0))
        others = further_uploads(rows, self.uploads_per_mixing)
        made = rows.version + effect.commits
        turns = made + np.cumsum(effect.mixes_all)
        limits = {
            by_turns: (turns, most_turns),
            by_contributions: (applied, most),
            StopReason.BYTES: (
                applied * per_contribution + np.cumsum(others) * per_other,
                spendable,
            ),
        }
        time = inf if self.stop.time is None else self.stop.time
        end = int(np.searchsorted(rows.time, time, side="right"))
        if time <= self.entry["virtual_s"]:
            reason = StopReason.TIME
        for why, (count, limit) in limits.items():
            reached = int(np.searchsorted(count, min(limit, FOREVER))) + 1
            if reached < end or (reached == end and reason is not StopReason.TIME):
                end, reason = reached, why
        last = float(rows.time[end - 1]) if end else 0.0
        over = time if reason is StopReason.TIME else last
        rows = rows.slice(0, end)
        commits = int(made[end - 1]) if end else 0
        return rows, _under_way(jobs, over, commits), reason


def replayed(
    planned: RunTimeline, config: Recording, run: Run, *, notes_reads: bool = False
) -> RecordedTimeline:
    """Returns the recorded timeline of a run.

    Args:
        planned: Timeline that would be simulated otherwise.
        config: Place of the recording.
        run: Run of a study.
        notes_reads: Whether jobs of which nothing comes need rows.

    Raises:
        ScenarioError: the recording holds no such run, or does not fit the scenario.
        StudyError: the folder holds no recording.
    """
    assert config.replay is not None
    study = _recording(config.replay)
    entry = _chosen(study, config.replay, run)
    pairs = {
        "clients": (entry["num_clients"], planned.num_clients),
        "protocol.kind": (entry["protocol"], tag(type(planned.protocol))),
        "workers in a row": (entry["width"], planned.width),
    }
    for what, (recorded, wanted) in pairs.items():
        if recorded != wanted:
            raise ScenarioError(
                f"timeline.replay must fit the scenario, whose {what} are {wanted}, "
                f"but {config.replay} was recorded with {recorded}; change one of them"
            )
    if notes_reads:
        _check_reads(study, entry, config.replay)
    # After the end of a recording nothing is known: a scenario that would continue by
    # another rule ends there, and says so.
    stop, outlasted = planned.stop, False
    recorded_s, known = entry["virtual_s"], entry["stop"] in TIMED
    wanted = stop.time or (inf if known else 0)
    other_rule = _given(stop) != _rule(entry)
    if other_rule and entry["stop"] != "stalled" and 0 < recorded_s < wanted:
        stop, outlasted = stop.replaced(time=recorded_s), True
    return RecordedTimeline(
        clients=planned.clients,
        protocol=planned.protocol,
        num_clients=planned.num_clients,
        seed=planned.seed,
        stop=stop,
        workload=planned.workload,
        config=config,
        study=study,
        entry=entry,
        outlasted=outlasted,
        answer_log=planned.answer_log,
        job_steps=job_steps_of(study, entry["run"], planned.num_clients),
    )


def _check_reads(study: Study, entry: RunEntry, folder: str) -> None:
    """Refuses recordings that do not say where clients of failed jobs got a model."""
    jobs, rows = jobs_of(study, entry["run"]), study.arrow("rows", entry["run"])
    in_vain = ~np.isin(jobs.outcome, (*UNDER_WAY, Outcome.APPLIED))
    vain = int((in_vain & np.isfinite(jobs.begun_time)).sum())
    if vain != np.isin(rows["kind"].to_pylist(), FAILS).sum():
        raise ScenarioError(
            "timeline.replay must have a row of every model that clients got where "
            f"algorithm.chain has a download stage, but {folder} has none of {vain} "
            "jobs that were not applied; simulate the timeline, or remove the stage"
        )


def _given(stop: Stop) -> dict[str, object]:
    """Returns the rule by which a scenario stops, but for what needs numbers."""
    return stop.model_dump(mode="json", exclude={"target"})


def recorded_run(config: Recording, run: Run) -> int:
    """Returns the number of the recorded run that replaces a run.

    Raises:
        ScenarioError, StudyError: As `replayed` does.
    """
    assert config.replay is not None
    study = _recording(config.replay)
    return _chosen(study, config.replay, run)["run"]


def _recording(folder: str) -> Study:
    """Returns a recording, read again only after its folder has changed."""
    path = files.folder(folder)
    try:
        found = [(entry.name, entry.stat()) for entry in os.scandir(path)]
    except OSError:
        return load(path)  # it says what is wrong
    state = sorted((name, each.st_size, each.st_mtime_ns) for name, each in found)
    return _loaded(path, tuple(state))


@lru_cache(maxsize=1)
def _loaded(path: Path, state: tuple[tuple[str, int, int], ...]) -> Study:
    return load(path)


def _rule(entry: RunEntry) -> dict[str, object]:
    """Returns the rule by which a recorded run stopped; nothing if it had none."""
    stop = dict(entry["scenario"].get("stop") or {})
    stop.pop("target", None)
    return stop


def _chosen(study: Study, folder: str, run: Run) -> RunEntry:
    entries = study.manifest["runs"]
    if study.manifest.get("kind") != "timeline":
        entries = [entry for entry in entries if "feedback" in entry]
    if not entries:
        raise ScenarioError(
            f"timeline.replay must be a folder that `stalesim timeline` wrote, got "
            f"{folder}, which holds no rows; record one"
        )
    ended = [entry for entry in entries if entry["stop"] != "incomplete"]
    for name in (run.label, run.variant):
        for entry in ended:
            if (entry["label"], entry["replicate"]) == (name, run.replicate):
                return entry
    if len(entries) == len(ended) == 1:
        return ended[0]
    known = ", ".join(dict.fromkeys(entry["label"] for entry in ended))
    raise ScenarioError(
        f"timeline.replay must hold a run {run.label!r} with replicate "
        f"{run.replicate}, but {folder} holds {known or 'none that ended'}; record it"
    )


def _under_way(jobs: Jobs, over: float, commits: int) -> Jobs:
    """Returns the jobs that had started by an instant, as they were then.

    Jobs stand in the order in which they ended; when one was lost is known only from
    those around it, so that what was lost after the last commit counts as under way.
    Nor is it known when a message was repeated: its repeats count once it is sent.
    """
    applied = np.flatnonzero(jobs.commit <= commits)
    ended = np.arange(jobs.client.size) <= (applied[-1] if applied.size else -1)
    kept = jobs.read_time <= over
    jobs = Jobs(*(column[kept].copy() for column in jobs))
    going = ~ended[kept]
    for name in ("begun_time", "computed_time", "sent_time", "arrived_time"):
        column = getattr(jobs, name)
        column[going & ~(column <= over)] = np.nan
    jobs.applied_time[going] = np.nan
    jobs.commit[going] = NO_COMMIT
    jobs.outcome[going] = Outcome.IN_FLIGHT
    jobs.uploads[going & np.isnan(jobs.sent_time)] = 0
    order = np.argsort(going, kind="stable")
    return Jobs(*(column[order] for column in jobs))
