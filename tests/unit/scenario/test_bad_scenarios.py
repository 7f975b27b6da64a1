"""Every mistake ends in one line with the file, the line, what and the remedy."""

import re
from pathlib import Path

import pytest

from simulator.scenario.errors import ScenarioError
from simulator.scenario.reading import read

GOOD = """\
name: study
seed: 1
replicates: 2
problem:
  data: {kind: digits, scale: unit}
  partition: {kind: vertical, parties: 4}
  l2: 0.001
clients:
  compute: {law: poisson, mu: "2*m", scale: "1/(2*M)"}
protocol: {kind: asynchronous}
algorithm:
  kind: vafl
  step_size: 0.1
  batch: 0.01
  upload: all
stop: {time: 10}
evaluate: {every: {time: 1}}
variants:
  async: {}
  sync: {protocol: {kind: synchronous}}
sweep: {algorithm.step_size: [0.1, 0.2]}
"""

# name: (what is replaced, by what, line of the message, words in the message)
BAD = {
    "typo in a top key": (
        "replicates:",
        "replicats:",
        3,
        ["replicats", "'replicates'"],
    ),
    "typo in a nested key": ("step_size: 0.1\n", "stepsize: 0.1\n", 13, ["step"]),
    "typo in data": (
        "scale: unit",
        "scael: unit",
        5,
        ["problem.data.scael", "'scale'"],
    ),
    "typo in partition": ("parties: 4", "party: 4", 6, ["party", "'parties'"]),
    "wrong type": ("replicates: 2", "replicates: many", 3, ["replicates", "many"]),
    "fractional count": ("replicates: 2", "replicates: 1.5", 3, ["replicates", "1.5"]),
    "negative seed": ("seed: 1", "seed: -1", 2, ["seed", "-1"]),
    "not a number": ("l2: 0.001", "l2: .nan", 7, ["l2", "nan"]),
    "infinite time": ("time: 10", "time: .inf", 16, ["stop.time", "inf"]),
    "negative step": ("step_size: 0.1\n", "step_size: -0.1\n", 13, ["step_size"]),
    "zero batch": ("batch: 0.01", "batch: 0", 14, ["algorithm.batch", "0"]),
    "unknown upload": ("upload: all", "upload: some", 15, ["upload", "some", "batch"]),
    "missing upload": ("  upload: all\n", "", 11, ["algorithm.upload", "missing"]),
    "unknown protocol": (
        "protocol: {kind: asynchronous}",
        "protocol: {kind: asynchronus}",
        10,
        ["protocol.kind", "'asynchronus'", "'asynchronous'"],
    ),
    "protocol without kind": (
        "protocol: {kind: asynchronous}",
        "protocol: {t: 2}",
        10,
        ["protocol.kind", "missing", "synchronous"],
    ),
    "unknown algorithm": ("kind: vafl", "kind: vaffl", 12, ["'vaffl'", "'vafl'"]),
    "unknown data": ("kind: digits", "kind: digit", 5, ["'digit'", "'digits'"]),
    "unknown law": ("law: poisson", "law: poison", 4, ["'poison'", "'poisson'"]),
    "unknown parameter": ('mu: "2*m"', 'lam: "2*m"', 4, ["lam", "poisson"]),
    "missing parameter": ('mu: "2*m", ', "", 4, ["mu", "missing"]),
    "negative scale": ('scale: "1/(2*M)"', "scale: -1", 4, ["scale", "-1"]),
    "negative mean": ('mu: "2*m"', 'mu: "-m"', 4, ["poisson", "client 1"]),
    "negative durations": (
        'law: poisson, mu: "2*m", scale: "1/(2*M)"',
        "law: norm",
        4,
        [">= 0", "norm"],
    ),
    "negative constant": (
        'law: poisson, mu: "2*m", scale: "1/(2*M)"',
        "law: constant, value: -1",
        4,
        [">= 0", "-1"],
    ),
    "time stands still": (
        'law: poisson, mu: "2*m", scale: "1/(2*M)"',
        "law: constant, value: 0",
        4,
        ["client 1", "take time"],
    ),
    "expression calls": (
        '"2*m"',
        "\"__import__('os').system('true')\"",
        9,
        ["must not call", "allowed"],
    ),
    "expression names": ('"2*m"', '"2*n"', 9, ["'n'", "allowed"]),
    "expression attribute": ('"2*m"', '"m.real"', 9, ["Attribute"]),
    "expression hangs": ('"2*m"', '"9**9**9"', 4, ["exponent"]),
    "expression divides by zero": ('"2*m"', '"1/(m-1)"', 4, ["zero", "m = 1"]),
    "list too short": ('"2*m"', "[1, 2, 3]", 4, ["one entry per client (4)", "3"]),
    "impossible t": (
        "{kind: asynchronous}",
        "{kind: t_synchronous, t: 9}",
        1,
        ["protocol.t", "(4)", "9"],
    ),
    "stale key": (
        "{kind: asynchronous}",
        "{kind: asynchronous, t: 2}",
        10,
        ["protocol.t"],
    ),
    "two partitions": (
        "parties: 4",
        "parties: 4, groups: {a: [0]}",
        6,
        ["parties or groups"],
    ),
    "partition of the other kind": (
        "{kind: vertical, parties: 4}",
        "{kind: iid, clients: 4}",
        1,
        ["vertical", "'iid'"],
    ),
    "unknown metric": (
        "{every: {time: 1}}",
        "{every: {time: 1}, metrics: [acuracy]}",
        17,
        ["metrics", "acuracy"],
    ),
    "target without its metric": (
        "{time: 10}",
        "{time: 10, target: {objective: 0.1}}",
        1,
        ["stop.target", "'objective'"],
    ),
    "no end": ("stop: {time: 10}", "stop: {}", 16, ["stop", "at least one of time"]),
    "two periods": ("{time: 1}", "{time: 1, commits: 2}", 17, ["exactly one"]),
    "duplicate key": ("seed: 1", "seed: 1\nseed: 2", 3, ["seed", "twice", "line 2"]),
    "bad variant": (
        "sync: {protocol: {kind: synchronous}}",
        "sync: {protocol: {kind: synchronus}}",
        20,
        ["variants.sync", "'synchronus'", "'synchronous'"],
    ),
    "variant with a typo": ("async: {}", "async: {sed: 2}", 19, ["sed", "'seed'"]),
    "bad sweep key": ("algorithm.step_size:", "algorithm.stepsize:", 21, ["stepsize"]),
    "bad sweep value": ("[0.1, 0.2]", "[0.1, -0.2]", 21, ["-0.2"]),
    "missing section": ("stop: {time: 10}\n", "", 1, ["stop is missing"]),
    "list for a mapping": ("stop: {time: 10}", "stop: [10]", 16, ["stop", "mapping"]),
    "broken YAML": ("stop: {time: 10}", "stop: {time: 10", 17, ["YAML"]),
    "a name with a slash": ("name: study", "name: a/b", 1, ["name", "a/b"]),
}


def line_of(text: str, words: list[str]) -> int:
    del words
    return text.count("\n")


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_one_line_with_its_place_and_remedy(
    case: str, tmp_path: Path
) -> None:
    old, new, line, words = BAD[case]
    assert old in GOOD
    path = tmp_path / "bad.yaml"
    path.write_text(GOOD.replace(old, new), encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        read(path)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 500
    found = re.match(rf"{re.escape(str(path))}:(\d+): ", message)
    assert found, message
    assert int(found[1]) in (line, _section_line(case)), message
    for word in words:
        assert word in message


def _section_line(case: str) -> int:
    """Laws are judged with all their clients, so at the section or at the line."""
    laws = ("law", "parameter", "scale", "mean", "durations", "constant", "still")
    numbers = ("hangs", "zero", "short")
    return 1 if any(word in case for word in laws + numbers) else BAD[case][2]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ["no such file"]),
        (b"", ["empty"]),
        (b"# nothing\n", ["empty"]),
        (b"- a\n- b\n", ["mapping"]),
        (b"\xff\xfe\x00", ["UTF-8"]),
        (b"name: \x01\n", ["YAML"]),
    ],
)
def test_a_file_that_is_no_scenario(
    content: bytes | None, words: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "bad.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ScenarioError) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_a_folder_is_no_scenario(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="folder"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("seed", ["dotted.key=value"]),
        ("sede=1", ["sede", "'seed'"]),
        ("algorithm.stepsize=1", ["stepsize", "'step_size'"]),
        ("protocol.kind=synchronus", ["'synchronus'", "'synchronous'"]),
        ("stop.time=-1", ["stop.time", "-1"]),
        ("stop={time: [", ["YAML"]),
    ],
)
def test_a_bad_override_is_named(
    override: str, words: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "good.yaml"
    path.write_text(GOOD, encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        read(path, [override])
    assert override in str(caught.value)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_the_good_scenario_is_good(tmp_path: Path) -> None:
    path = tmp_path / "good.yaml"
    path.write_text(GOOD, encoding="utf-8")
    scenario = read(
        path, ["seed=010", "stop={commits: 5}", "clients.idle={law: expon}"]
    )
    assert scenario.seed == 10
    assert scenario.stop.commits == 5
    assert scenario.stop.time is None or scenario.stop.time == 10
    assert scenario.clients.idle.law == "expon"
