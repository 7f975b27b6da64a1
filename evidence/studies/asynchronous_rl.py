"""Foretells the steps of verl's fully asynchronous runs from its synchronous ones.

    python -m evidence.studies.asynchronous_rl  # to results/asynchronous-rl (2 minutes)

Inputs are the rows "colocate sync" of docs/advance/fully_async.md in the repository
volcengine/verl (commit b178a3c) and the options of the asynchronous runs, from the
same page and from verl/experimental/fully_async_policy. What the page prints of the
asynchronous runs (`printed.csv`) was hidden until the predictions had been committed,
twice: `LATER` was foretold when `RUNS` had been read, and times a factor of theirs.

A replica of an engine makes a token in a + b m seconds with m samples under way. All
samples of a synchronous step start together, so that it generates for

    a (longest sample) + b (samples of a replica) (mean length).

Training takes what the synchronous row with as many GPUs says, or the inverse of their
number where there is none. A step is 512 prompts (64 with tools) of 16 samples: four
batches, after which the weights are sent. A replica has 16 prompts under way, each of
which keeps its places until its last sample is finished.
"""

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stalesim.simulator.extras.rl.world import RolloutOptions, play
from stalesim.simulator.extras.rl.world.measures import measured
from stalesim.simulator.extras.rl.world.options import check_rollouts

RESULTS = Path(__file__).resolve().parents[1] / "results" / "asynchronous-rl"
GROUP, BATCHES, ENGINE = 16, 4, 4
"""Samples of a prompt; batches of a step; GPUs of a replica."""
PLACES = 16 * GROUP
"""Samples that a replica has under way at most."""
SYNCHRONOUS = {32: (357.41, 269.80), 64: (150.72, 133.41), 128: (177.85, 113.81)}
"""Seconds of generation and of `update_actor`, by GPUs: Qwen2.5-Math-7B."""
LARGE = {128: (348.05, 86.27 + 20.86)}
"""The same of Qwen3-30B-A3B; its asynchronous trainer computes `ref`, too."""
SHORT, TOOLS = {16: (52.939, 430.263)}, {32: (228.03, 111.84)}
"""The same of answers of 10K tokens at most, and of turns with tools."""
SPREADS, MEANS = (1.0, 0.7, 1.3), (2048, 1024, 4096)
"""Of log-normal lengths, which are not published: the first is assumed."""
SEED = 1


class PredictedRun(NamedTuple):
    """A run to foretell.

    Attributes:
        engines: GPUs that generate.
        trainers: GPUs that train.
        budget: Batches that may be started and not trained when weights are sent.
        rows: Synchronous rows to learn from.
        longest: Most tokens of a sample.
        load: Seconds of sending the weights.
        prompts: Of a step.
    """

    engines: int
    trainers: int
    budget: float
    rows: dict[int, tuple[float, float]] = SYNCHRONOUS
    longest: int = 28 * 1024
    load: float = 0.12
    prompts: int = 512


RUNS = {
    "16:16": PredictedRun(16, 16, 6),
    "32:32": PredictedRun(32, 32, 6),
    "64:64": PredictedRun(64, 64, 6),
    "64:64, threshold 0": PredictedRun(64, 64, 4),
    "64:64, threshold 0.1": PredictedRun(64, 64, 4.4),
    "64:64, threshold 0.3": PredictedRun(64, 64, 5.2),
    "30B, 96:32": PredictedRun(96, 32, 6, LARGE, 8 * 1024, 4.38),
}
LATER = {
    "10K tokens, 8:8": PredictedRun(8, 8, 6, SHORT, 10 * 1024),
    "tools, 16:16": PredictedRun(16, 16, 8, TOOLS, 16 * 1024, prompts=64),
}
LEARNT = ("16:16", "32:32", "64:64", "30B, 96:32")
"""One run for each division of GPUs, by which the later ones are corrected."""


def speeds(run: PredictedRun, mean: float) -> tuple[float, float]:
    """Returns a and b, whose generation times differ least from the rows' (relative).

    With a single row each of the two terms is half of its time: assumed.
    """
    times = np.array([generating for generating, _ in run.rows.values()])
    each = np.array([run.prompts * GROUP * ENGINE / gpus for gpus in run.rows])
    if len(times) == 1:
        return float(times[0] / 2 / run.longest), float(times[0] / 2 / each[0] / mean)
    terms = np.stack([np.full(len(times), run.longest), each * mean], axis=1)
    found, *_ = np.linalg.lstsq(terms / times[:, None], np.ones(len(times)))
    return float(found[0]), float(found[1])


def training(run: PredictedRun) -> float:
    """Returns the seconds of training on the prompts of a step."""
    nearest = run.trainers if run.trainers in run.rows else min(run.rows)
    return run.rows[nearest][1] * nearest / run.trainers


def world_of(run: PredictedRun, spread: float, mean: float, lead: int) -> Any:
    """Returns the run's world.

    Args:
        run: Run.
        spread: s of log-normal lengths.
        mean: Their mean before they are cut off, tokens.
        lead: Batches by which starts may lead the trainer. The runs' budget is renewed
            when weights are sent, and a world's after each batch: theirs is between
            this budget and one that is a step's other batches smaller.
    """
    slow, shared = speeds(run, mean)
    seconds, whole = training(run), run.budget <= BATCHES
    batches = 1 if whole else BATCHES
    world = RolloutOptions.model_validate(
        {
            "generation": {
                "slots": PLACES,
                "machines": run.engines // ENGINE,
                "group": GROUP,
                "admit": "group",
                "tokens": {
                    "law": "lognorm",
                    "s": spread,
                    "scale": mean / np.exp(spread**2 / 2),
                },
                "most_tokens": run.longest,
                "seconds_per_token": f"{slow} + {shared}*m",
                "max_async_level": 0 if whole else lead,
            },
            # At threshold 0 a step's first three batches are trained meanwhile.
            "trainer": {
                "samples": run.prompts * GROUP // batches,
                "step": {"law": "constant", "value": seconds / BATCHES},
            },
            "weights": {
                "every": batches,
                "seconds": {"law": "constant", "value": run.load},
            },
            "stop": {"steps": 20 * batches},
        }
    )
    check_rollouts(world)
    return world


def seconds_of(run: PredictedRun, spread: float, mean: float, lead: int) -> float:
    """Returns the seconds of a step."""
    world = world_of(run, spread, mean, lead)
    told = measured(world, SEED, play(world, SEED))
    return told["seconds_per_step"] * world.weights.every


def predicted(run: PredictedRun) -> tuple[float, float, float]:
    """Returns seconds of a step as assumed, and the least and greatest of its range.

    The range changes one assumption at a time: spread, mean, or budget.
    """
    most = round(run.budget) - 1
    cases = [(SPREADS[0], mean, most) for mean in MEANS]
    cases += [(spread, MEANS[0], most) for spread in SPREADS[1:]]
    if run.budget > BATCHES:
        cases.append((SPREADS[0], MEANS[0], max(0, most - BATCHES + 1)))
    found = [seconds_of(run, *case) for case in cases]
    return found[0], min(found), max(found)


def read(name: str) -> dict[str, list[float]]:
    """Returns the numbers of each run in a table of the results."""
    with (RESULTS / f"{name}.csv").open(newline="") as file:
        _, *rows = csv.reader(file)
    return {run: [float(number) for number in numbers] for run, *numbers in rows}


def factor() -> float:
    """Returns the geometric mean of printed over predicted, of the runs of `LEARNT`."""
    told, printed = read("predicted"), read("printed")
    logs = [np.log(printed[run][0] / told[run][0]) for run in LEARNT]
    return float(np.exp(np.mean(logs)))


def main() -> None:
    """Writes the predictions."""
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "predicted.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("run", "seconds", "least", "most"))
        for name, run in (RUNS | LATER).items():
            row = (name, *(f"{value:.1f}" for value in predicted(run)))
            writer.writerow(row)
            print(*row)


if __name__ == "__main__":
    main()
