"""The timeline of a world of samples: a commit is a step of its trainer.

A register holds the version whose number is the register's modulo their count, so that
there are as many as the largest staleness requires, and one for the current version.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from jaxtyping import Int
from typing_extensions import override

from ...files.timeline import (
    NO_COMMIT,
    NO_SLOT,
    NO_WORKER,
    SERVER,
    Chunk,
    Jobs,
    Kind,
    Outcome,
    Rows,
    StopReason,
    check,
)
from ...parts.errors import ScenarioError
from ...timelines.simulated import SimulatedTimeline
from . import world as rollouts
from .world import Rollouts, SampleOutcome
from .world.options import RolloutStop

OUTCOMES = {
    SampleOutcome.TRAINED: Outcome.APPLIED,
    SampleOutcome.DROPPED: Outcome.REJECTED,
    SampleOutcome.ABORTED: Outcome.STOPPED,
    SampleOutcome.MASKED: Outcome.APPLIED,
    SampleOutcome.UNDER_WAY: Outcome.IN_FLIGHT,
}
"""Outcome of a sample's job; one that is ready and under way is `BUFFERED`."""

MOST_SAMPLES = 5_000_000
"""Samples that a run trains at most, since its world is played and kept as a whole."""


class RolloutTimeline(SimulatedTimeline):
    """The timeline of slots, a queue and a trainer; the world is played as a whole."""

    @property
    @override
    def made_by(self) -> str:
        return "events"

    @property
    @override
    def width(self) -> int:
        return self._wide.shape[1]

    @property
    @override
    def num_registers(self) -> int:
        read = self._rows_of.read_version
        if not read.size:
            return 1
        largest = int((self._rows_of.version - read.min(axis=1)).max())
        # A power of two, so that replicates mostly have the same program.
        return 1 << largest.bit_length()

    @override
    def chunks(self, num_rows: int) -> Iterator[Chunk]:
        rows, registers = self._rows_of, self.num_registers
        rows = rows._replace(
            read_slot=np.where(
                *(self._wide == NO_WORKER, NO_SLOT, rows.read_version % registers)
            ).astype(np.int32),
            write_slot=((rows.version + 1) % registers).astype(np.int32),
        )
        check(rows, registers)
        size = rows.time.size
        for start in range(0, max(size, 1), num_rows):
            stop = min(start + num_rows, size)
            jobs = self._wide[start:stop]
            jobs = jobs[jobs != NO_WORKER]
            final = stop == size
            if final:  # with the samples that were in no batch
                samples = np.arange(self._numbers.size)
                jobs = np.concatenate([jobs, np.setdiff1d(samples, self._wide)])
            reason = self._stop_reason if final else None
            yield Chunk(rows.slice(start, stop), self._jobs_of(jobs), reason)

    @cached_property
    def _steps(self) -> int | None:
        """Steps after which the run ends at the latest; None if time alone ends it."""
        stop = self.stop
        counts = (stop.commits, stop.rounds, stop.contributions, stop.epochs)
        if all(count is None for count in counts):
            if stop.time is None:
                raise ScenarioError(
                    "stop must have time, commits, contributions or epochs for the "
                    "protocol 'rollouts', which sends no bytes; add one"
                )
            return None
        (_, turns), (_, contributions) = self.limits
        batch = self.cadence.width
        steps = min(turns, -(-contributions // batch))
        if steps * batch > MOST_SAMPLES:
            raise _too_long(f"got {steps:,} steps of {batch:,}")
        return steps

    @property
    def _options(self) -> rollouts.RolloutOptions:
        most = max(1, MOST_SAMPLES // self.cadence.width)
        stop = RolloutStop(steps=self._steps or most, time=self.stop.time)
        return self.protocol.world(stop)  # pyright: ignore[reportAttributeAccessIssue]

    @cached_property
    def _played_world(self) -> Rollouts:
        self._confirm_inputs()
        found = rollouts.play(self._options, self.seed)
        if self._steps is None and found.stop != "time":
            raise _too_long(f"got {self.stop.time:g} virtual s")
        return found

    @property
    def _stop_reason(self) -> StopReason:
        if self._played_world.stop == "time":
            return StopReason.TIME
        (by_turns, turns), (by_contributions, _) = self.limits
        return by_turns if turns == self._steps else by_contributions

    @cached_property
    def _wide(self) -> Int[np.ndarray, "T W"]:
        """Samples of each step, by their groups; then `NO_WORKER`."""
        samples, steps = self._played_world.samples, self._played_world.steps
        fates = (SampleOutcome.TRAINED, SampleOutcome.MASKED)
        rows = np.flatnonzero(np.isin(samples["outcome"], fates))
        columns = (samples[name][rows] for name in ("member", "group", "step"))
        rows = rows[np.lexsort(tuple(columns))]
        step = samples["step"][rows] - 1
        place = np.arange(step.size) - np.searchsorted(step, step)
        most = max(place.max(initial=-1) + 1, self.cadence.width)
        size = int(np.isfinite(steps["end_time"]).sum())
        wide = np.full((size, most), NO_WORKER)
        wide[step, place] = rows
        return wide

    @cached_property
    def _rows_of(self) -> Rows:
        """Rows of all steps, without their registers."""
        samples, wide = self._played_world.samples, self._wide
        size = len(wide)
        absent = wide == NO_WORKER
        of = np.where(absent, 0, wide)
        none = np.full(size, NO_WORKER, np.int32)
        zeros = np.zeros(size, np.int32)
        return Rows(
            time=self._played_world.steps["end_time"][:size],
            kind=np.full(size, Kind.COMMIT, np.int32),
            node=np.full(size, SERVER, np.int32),
            worker=np.where(absent, NO_WORKER, samples["slot"][of]).astype(np.int32),
            job=np.where(absent, 0, self._numbers[of]).astype(np.int32),
            version=np.arange(size, dtype=np.int64),
            # Padding has read the newest version, so that no register is kept for it.
            read_version=np.where(
                absent, np.arange(size)[:, None], samples["start_version"][of]
            ),
            read_slot=np.zeros(wide.shape, np.int32),
            write_slot=zeros,
            peer=none,
            round=zeros,
        )

    @cached_property
    def _numbers(self) -> Int[np.ndarray, " n"]:
        """Numbers of all samples' jobs."""
        samples, group = self._played_world.samples, self._options.generation.group
        return samples["prompt"] * group + samples["member"]

    def _jobs_of(self, some: Int[np.ndarray, " n"]) -> Jobs:
        found = self._played_world
        mine = {name: values[some] for name, values in found.samples.items()}
        outcome = np.array([OUTCOMES[fate] for fate in SampleOutcome], np.int32)[
            mine["outcome"]
        ]
        waits = (outcome == Outcome.IN_FLIGHT) & np.isfinite(mine["ready_time"])
        applied = outcome == Outcome.APPLIED
        finished = np.where(outcome == Outcome.STOPPED, np.nan, mine["finish_time"])
        ends = np.append(np.nan, found.steps["end_time"])
        return Jobs(
            client=mine["slot"].astype(np.int32),
            job=self._numbers[some].astype(np.int32),
            refresh=np.zeros(some.size, np.int32),
            read_time=mine["start_time"],
            begun_time=mine["start_time"],
            computed_time=finished,
            sent_time=finished,
            arrived_time=mine["ready_time"],
            applied_time=np.where(applied, ends[mine["step"]], np.nan),
            read_version=mine["start_version"],
            commit=np.where(applied, mine["step"], NO_COMMIT),
            outcome=np.where(waits, Outcome.BUFFERED, outcome).astype(np.int32),
            uploads=np.isfinite(finished).astype(np.int32),
        )


def _too_long(got: str) -> ScenarioError:
    return ScenarioError(
        f"stop must leave at most {MOST_SAMPLES:,} samples that are trained with the "
        f"protocol 'rollouts', {got}; stop earlier"
    )
