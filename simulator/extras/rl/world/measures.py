"""Results of a run of samples: staleness, speed, waste, and bias of lengths.

Staleness and seconds per step leave out the start of a run. Shares and mean lengths are
of the whole run, as its costs are.
"""

from typing import TypedDict

import numpy as np
from jaxtyping import Float, Int

from .draws import RolloutDraws
from .options import RolloutOptions
from .record import Rollouts, SampleOutcome

START = 0.2
"""Fraction of the steps that is the start of a run."""
GROUPS = 20_000
"""Groups by whose lengths a law is known where it has no closed form."""
QUANTILES = (0.5, 0.9, 0.99)


class RolloutLoad(TypedDict):
    """The closed forms' inputs for a world, an entry of its run in the manifest.

    Attributes:
        slots: C, samples that are generated at once.
        batch: B, samples of a step.
        rho: Samples generated per second over samples trained per second, if neither
            waits.
        tail: M, the mean length of a group's longest sample over the mean length.
        group: S, samples that enter the queue together.
        exempt: Why closed forms do not hold; empty if they do.
    """

    slots: int
    batch: float
    rho: float
    tail: float
    group: int
    exempt: str


def workload(world: RolloutOptions, seed: int) -> RolloutLoad:
    """Returns the closed forms' inputs for a world, from many of its draws."""
    draws, generation = RolloutDraws(world, seed), world.generation
    size, trainer = generation.group, world.trainer
    lengths = draws.lengths(GROUPS * size if size < 50 else 20 * GROUPS // size * size)
    mean = float(lengths.mean())
    longest = lengths.reshape(-1, size).max(axis=1) if generation.complete else lengths
    batch = trainer.batch if trainer.samples is not None else trainer.batch / mean
    taken = [draws.step(number, batch * mean) for number in range(4096)]
    rate = generation.num_slots / (mean * generation.speeds()[-1])
    return RolloutLoad(
        slots=generation.num_slots,
        batch=batch,
        rho=rate * float(np.mean(taken)) / batch,
        tail=float(longest.mean()) / mean,
        group=size if generation.complete else 1,
        exempt=_exempt(world),
    )


def _exempt(world: RolloutOptions) -> str:
    """Returns the first option with which the closed forms do not hold, or nothing."""
    queue, weights = world.queue, world.weights
    found = {
        "slots wait or stop": not _is_free(world),
        "queue.max_age drops by staleness": queue.max_age is not None,
        f"the order is {queue.order}": queue.order != "ready_first",
        "weights are updated every few batches": weights.every > 1,
        "batches are of tokens": world.trainer.samples is None,
    }
    return next((why for why, is_so in found.items() if is_so), "")


def _is_free(world: RolloutOptions) -> bool:
    """Says whether nothing feeds back on who generates what when."""
    generation, queue, weights = world.generation, world.queue, world.weights
    return (
        weights.mode == "in_place"
        and not weights.seconds.check(1, "weights.seconds").any()
        and generation.max_async_level is None
        and generation.admit == "sample"
        and (queue.capacity is None or queue.full == "drop_oldest")
        and queue.dropped == "lost"
    )


def measured(world: RolloutOptions, seed: int, found: Rollouts) -> dict[str, float]:
    """Returns the measures of a run.

    Returns:
        Numbers by name: staleness in versions, NaN where nothing was trained.
    """
    started = int((found.samples["attempt"] == 0).sum())
    drawn = RolloutDraws(world, seed).lengths(started)
    slots, each = world.generation.num_slots, world.trainer.optimizer_steps
    return measures(found, slots, each, drawn)


def measures(
    found: Rollouts, slots: int, each: int, drawn: Float[np.ndarray, " n"]
) -> dict[str, float]:
    """Returns the measures of a record."""
    samples, steps = found.samples, found.steps
    trained, first = _measured(found)
    age = (samples["step"] - 1 - samples["start_version"])[trained]
    queued = (samples["step"] - 1 - samples["ready_version"])[trained]
    tokens, outcome = samples["tokens"], samples["outcome"]
    _, token_age, of_age = pieces_of(found, trained)
    whole = of_age.sum()
    token_mean = float((token_age * of_age).sum() / whole) if whole else np.nan
    counts = np.bincount(outcome, minlength=len(SampleOutcome)).astype(float)
    shares = counts / (counts[: SampleOutcome.UNDER_WAY].sum() or np.nan)
    by_fate = np.bincount(outcome, tokens, minlength=len(SampleOutcome))
    wasted = by_fate[SampleOutcome.DROPPED] + by_fate[SampleOutcome.ABORTED]
    ended = by_fate[: SampleOutcome.UNDER_WAY].sum() or np.nan
    ends = steps["end_time"][np.isfinite(steps["end_time"])]
    per_step = np.nan
    if ends.size > first + 1:
        per_step = (ends[-1] - ends[first]) / (ends.size - 1 - first)
    slot_time = slots * found.end_time or np.nan
    busy = np.fmin(steps["end_time"], found.end_time) - steps["start_time"]
    with np.errstate(invalid="ignore", divide="ignore"):
        quantiles = np.quantile(age, QUANTILES) if age.size else [np.nan] * 3
        return {
            "steps": float(ends.size),
            "virtual_s": found.end_time,
            "seconds_per_step": float(per_step),
            "staleness_mean": _mean(age),
            "in_generation": _mean(age - queued),
            "in_queue": _mean(queued),
            **{
                f"staleness_q{round(100 * q)}": float(value)
                for q, value in zip(QUANTILES, quantiles, strict=True)
            },
            "staleness_max": float(age.max()) if age.size else np.nan,
            "token_staleness_mean": token_mean,
            "optimizer_steps_mean": _optimizer_mean(each, found, trained),
            "samples_trained": float(counts[SampleOutcome.TRAINED]),
            "samples_dropped": float(shares[SampleOutcome.DROPPED]),
            "samples_aborted": float(shares[SampleOutcome.ABORTED]),
            "samples_masked": float(shares[SampleOutcome.MASKED]),
            "tokens_wasted": float(wasted / ended),
            "tokens_masked": float(by_fate[SampleOutcome.MASKED] / ended),
            "trainer_idle": float(1 - busy.sum() / found.end_time)
            if found.end_time
            else np.nan,
            "slots_idle": 1 - found.slot_seconds["busy"] / slot_time,
            "tokens_trained": _mean(tokens[outcome == SampleOutcome.TRAINED]),
            "tokens_drawn": _mean(drawn),
        }


def ages(found: Rollouts) -> dict[str, np.ndarray]:
    """Returns how many samples and tokens were trained at each staleness.

    Of samples that were trained after the start of the run, from their first token;
    each token at the version that made it.
    """
    trained, _ = _measured(found)
    samples = found.samples
    age = (samples["step"] - 1 - samples["start_version"])[trained]
    _, token_age, tokens = pieces_of(found, trained)
    size = int(max(age.max(initial=-1), token_age.max(initial=-1))) + 1
    return {
        "staleness": np.arange(size),
        "samples": np.bincount(age, minlength=size),
        "tokens": np.bincount(token_age, tokens, minlength=size),
    }


def _measured(found: Rollouts) -> tuple[np.ndarray, int]:
    done = int(np.isfinite(found.steps["end_time"]).sum())
    first = int(START * done)
    step = found.samples["step"]
    is_trained = found.samples["outcome"] == SampleOutcome.TRAINED
    return np.flatnonzero(is_trained & (step > first)), first


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if values.size else float("nan")


def pieces_of(
    found: Rollouts, some: Int[np.ndarray, " n"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns samples' tokens by version: their sample, their staleness, how many."""
    samples, loads = found.samples, found.loads
    step = samples["step"]
    if found.pieces["sample"].size:
        mine = np.isin(found.pieces["sample"], some)
        row, version = (found.pieces[name][mine] for name in ("sample", "version"))
        return row, step[row] - 1 - version, found.pieces["tokens"][mine]
    start, end = samples["start_work"][some], samples["finish_work"][some]
    edges = np.r_[loads["work"], np.inf]
    # Of loads at one instant the one that the sample began with counts.
    place = np.minimum(
        np.searchsorted(loads["work"], start, "right") - 1,
        np.searchsorted(loads["version"], samples["start_version"][some], "right") - 1,
    )
    rows, late, counts = [], [], []
    left = np.arange(some.size)
    while left.size:
        low = np.maximum(start[left], edges[place])
        high = np.minimum(end[left], edges[place + 1])
        rows.append(some[left])
        late.append(step[some[left]] - 1 - loads["version"][place])
        counts.append(np.maximum(high - low, 0.0))
        on = edges[place + 1] < end[left]
        left, place = left[on], place[on] + 1
    if not rows:
        return some, some, np.zeros(0)
    row, age, tokens = map(np.concatenate, (rows, late, counts))
    return row, age, tokens


def _optimizer_mean(
    each: int, found: Rollouts, trained: Int[np.ndarray, " n"]
) -> float:
    """Returns the mean staleness in steps of the optimiser.

    A batch's trained samples are divided into equal parts in the order in which they
    began, each for one step; those of earlier parts count for the later ones.
    """
    step = found.samples["step"][trained]
    age = step - 1 - found.samples["start_version"][trained]
    sizes = np.bincount(step)
    order = np.argsort(step, kind="stable")
    ordered = step[order]
    place = np.arange(step.size) - np.searchsorted(ordered, ordered)
    part = place * each // sizes[ordered]
    return _mean(each * age[order] + part)
