"""Mistakes in methods, models and privacy: one line with its place and remedy."""

from pathlib import Path

import pytest

from stalesim.simulator.scenario.reading import read
from tests.unit.scenario.mistakes import complaint

GOOD = """\
name: study
problem:
  data: {kind: digits}
  partition: {kind: iid, clients: 4}
protocol: {kind: asynchronous}
clients: {compute: {law: expon}}
algorithm: {kind: sgd, step_size: 0.1, batch: 8}
stop: {commits: 10}
evaluate: {every: {commits: 5}}
"""
SGD = "algorithm: {kind: sgd, step_size: 0.1, batch: 8}"
SWEEP = "stop: {commits: 10}\nsweep: {algorithm.step_size: [1, 2]}"
VALUE = f"{SWEEP}\nclaims: [{{value: base, is: 1, within: 1, says: x, at"
CLAIM = "stop: {commits: 10}\nclaims: [{"
# name: (what is replaced, by what, line and key, what else it says)
BAD = {
    "buffering without a buffer": (
        "kind: sgd",
        "kind: fed_buff",
        "5: protocol.kind",
        "must be one of buffered for the algorithm 'fed_buff', got 'asynchronous'",
    ),
    "an unknown weight": (
        SGD,
        SGD.replace("}", ", weight: {kind: polynomal}}"),
        "7: algorithm.weight.kind",
        "polynomial",
    ),
    "two ways to noise": (
        SGD,
        SGD.replace("}", ", mechanism: {clip_bound: 1}}"),
        "7: algorithm.mechanism",
        "must have either multiplier or budget, not both or neither",
    ),
    "samples clipped over several steps": (
        SGD,
        SGD.replace(
            "}", ", local_steps: 2, mechanism: {clip_bound: 1, multiplier: 1}}"
        ),
        "7: algorithm.mechanism.clip",
        "must be contribution for local steps, got 'sample' with local_steps 2",
    ),
    "a network of parties": (
        "partition: {kind: iid, clients: 4}",
        "partition: {kind: vertical, parties: 4}\n  model: {kind: cnn}",
        "4: problem.partition.kind",
        "must be horizontal for the algorithm 'sgd'",
    ),
    "a party's model for rows": (
        "partition: {kind: iid, clients: 4}",
        "partition: {kind: iid, clients: 4}\n  model: {kind: mlp}",
        "5: problem.model.kind",
        "got 'mlp'; take dense (fully connected layers), cnn or linear",
    ),
    "a probe that never comes": (
        "stop: {commits: 10}",
        "stop: {commits: 10}\nprobe: {every: 0}",
        "9: probe.every",
        "must be >= 1, got 0",
    ),
    "a probe of nothing": (
        "stop: {commits: 10}",
        "stop: {commits: 10}\nprobe: {every: 1, what: []}",
        "9: probe.what",
        "got []",
    ),
    "privacy without noise": (
        "stop: {commits: 10}",
        "stop: {commits: 10}\nprivacy: {delta: 1.0e-5}",
        "9: privacy",
        "mechanism",
    ),
    "too much privacy": (
        SGD,
        "algorithm: {kind: audp, epsilon: 0}",
        "7: algorithm.epsilon",
        "must be > 0, got 0",
    ),
    "a claim about a sweep that is none": (
        "stop: {commits: 10}",
        "stop: {commits: 10}\nclaims: [{monotone: base, says: x}]",
        "9: claims.0",
        "must say over what; add over: a key of the sweep",
    ),
    "a claim over what is not swept": (
        "stop: {commits: 10}",
        f"{SWEEP}\nclaims: [{{monotone: base, over: algorithm.batch, says: x}}]",
        "10: claims.0.over",
        "got 'algorithm.batch'; did you mean 'algorithm.step_size'?",
    ),
    "a claim for values of what is not swept": (
        "stop: {commits: 10}",
        f"{VALUE}: {{algorithm.batch: 8}}}}]",
        "10: claims.0.at",
        "must name keys that are swept, got 'algorithm.batch'; did you mean",
    ),
    "a claim for a value that is not swept": (
        "stop: {commits: 10}",
        f"{VALUE}: {{algorithm.step_size: [1, 3]}}}}]",
        "10: claims.0.at.algorithm.step_size",
        "must be of the values that are swept, got 3; known are 1, 2",
    ),
    "a claim for no value": (
        "stop: {commits: 10}",
        f"{VALUE}: {{algorithm.step_size: []}}}}]",
        "10: claims.0.at.algorithm.step_size",
        "must be at least 1 long, got []; add an entry",
    ),
    "looks that do not rise": (
        "stop: {commits: 10}",
        "stop: {commits: 10}\nlooks: [8, 5]",
        "9: looks",
        "must have more replicates at every look, got [8, 5]; sort them, each once",
    ),
    "a division that is neither a number nor the replicate's": (
        "data: {kind: digits}",
        "data: {kind: digits, split_seed: run}",
        "3: problem.data.split_seed",
        "must be a whole number >= 0, or the word replicate, got 'run'",
    ),
    "a ratio of nothing": (
        "stop: {commits: 10}",
        f"{CLAIM}ratio: base, than: base, of: speed, is: 2, within: 1, says: x}}]",
        "9: claims.0.of",
        "got 'speed'",
    ),
    "a ratio of zero": (
        "stop: {commits: 10}",
        f"{CLAIM}ratio: base, than: base, of: commits, is: 0, within: 1, says: x}}]",
        "9: claims.0.is",
        "must be > 0 for a ratio, got 0",
    ),
    "a value of two sides": (
        "stop: {commits: 10}",
        f"{CLAIM}value: base, than: base, is: 1, within: 1, says: x}}]",
        "9: claims.0.than",
        "close, ratio, monotone, critical, no_worse_mean and ahead, not to value",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_one_line(case: str, tmp_path: Path) -> None:
    old, new, place, words = BAD[case]
    said = complaint(GOOD, old, new, tmp_path)
    assert said.startswith(place), said
    assert words in said, said


def test_the_good_one_is_good(tmp_path: Path) -> None:
    path = tmp_path / "good.yaml"
    path.write_text(GOOD, encoding="utf-8")
    assert read(path).algorithm.kind == "sgd"
