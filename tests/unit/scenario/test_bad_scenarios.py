"""Every mistake ends in one line with the file, the line, what and the remedy."""

from pathlib import Path

import pytest
import yaml

from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.scenario.reading import loads, placing, read, validated
from tests.unit.scenario.mistakes import complaint

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
sweep:
  algorithm.step_size:
    - 0.1
    - 0.2
claims:
  - {close: async, than: sync, within: 0.1, says: figure 2}
"""
POISSON = 'law: poisson, mu: "2*m", scale: "1/(2*M)"'
ASYNC = "protocol: {kind: asynchronous}"
CLAIM = "{close: async, than: sync, within: 0.1, says: figure 2}"

# name: (what is replaced, by what, line of the message, key, what else it says)
BAD = {
    "typo at the top": (
        "replicates:",
        "replicats:",
        3,
        "replicats",
        ["did you mean 'replicates'?"],
    ),
    "typo of a key that is needed": (
        "step_size: 0.1\n",
        "stepsize: 0.1\n",
        13,
        "algorithm.stepsize",
        ["did you mean 'step_size'?"],
    ),
    "another word for a key that is needed": (
        "step_size: 0.1\n",
        "lr: 0.1\n",
        13,
        "algorithm.lr",
        ["did you mean 'step_size'?"],
    ),
    "an unknown key next to one that is missing": (
        "step_size: 0.1\n",
        "wholly_different: 0.1\n",
        13,
        "algorithm.wholly_different",
        ["is not a known key; known are"],
    ),
    "a metric that has another name here": (
        "evaluate: {every: {time: 1}}",
        "evaluate: {every: {time: 1}, metrics: [accuracy]}",
        17,
        "evaluate.metrics.0",
        ["did you mean 'test_accuracy'?"],
    ),
    "an accuracy in percent": (
        "stop: {time: 10}",
        "stop: {time: 10, target: {test_accuracy: 90}}",
        16,
        "stop.target.test_accuracy",
        ["must be >= 0 and <= 1, which test_accuracy can be, got 90; change it"],
    ),
    "a claim on an accuracy in percent": (
        CLAIM,
        "{faster: async, than: sync, to: {test_accuracy: 1.5}, says: figure 2}",
        26,
        "claims.0.to.test_accuracy",
        ["must be >= 0 and <= 1", "got 1.5"],
    ),
    "a claim that an accuracy is in percent": (
        CLAIM,
        "{value: async, is: 93, within: 1, says: figure 2}",
        26,
        "claims.0.is",
        ["must be >= 0 and <= 1", "got 93"],
    ),
    "typo in data": (
        "scale: unit",
        "scael: unit",
        5,
        "problem.data.scael",
        ["did you mean 'scale'?"],
    ),
    "typo in partition": (
        "parties: 4",
        "party: 4",
        6,
        "problem.partition.party",
        ["did you mean 'parties'?"],
    ),
    "wrong type": (
        "replicates: 2",
        "replicates: many",
        3,
        "replicates",
        ["must be a whole number, got 'many'; write"],
    ),
    "fractional count": (
        "replicates: 2",
        "replicates: 1.5",
        3,
        "replicates",
        ["a whole number, got 1.5; write"],
    ),
    "negative seed": ("seed: 1", "seed: -1", 2, "seed", [">= 0, got -1; write 0 or"]),
    "true for a number": (
        "seed: 1",
        "seed: true",
        2,
        "seed",
        ["must be a number, got true; write 1"],
    ),
    "true in a list": ('"2*m"', "[1, 2, 3, true]", 9, "clients.compute.mu", ["got [1"]),
    "a word that YAML 1.1 takes for true": (
        "time: 10",
        "time: yes",
        16,
        "stop.time",
        ["must be a number, got 'yes'; write"],
    ),
    "a time of day": (
        "time: 10",
        "time: 12:30:00",
        16,
        "stop.time",
        ["got '12:30:00'; write a number"],
    ),
    "not a number": (
        "l2: 0.001",
        "l2: .nan",
        7,
        "problem.l2",
        ["a finite number, got nan; write"],
    ),
    "infinite time": ("time: 10", "time: .inf", 16, "stop.time", ["finite", "inf; "]),
    "negative step": (
        "step_size: 0.1\n",
        "step_size: -0.1\n",
        13,
        "algorithm.step_size",
        [">= 0, got -0.1; write 0 or more"],
    ),
    "unknown step rule": (
        "step_size: 0.1\n",
        "step_size: {kind: constnt, value: 1}\n",
        13,
        "algorithm.step_size.kind",
        ["got 'constnt'; did you mean 'constant'?"],
    ),
    "step rule without kind": (
        "step_size: 0.1\n",
        "step_size: {value: 1}\n",
        13,
        "algorithm.step_size.kind",
        ["missing", "bounded_nonconvex"],
    ),
    "zero batch": ("batch: 0.01", "batch: 0", 14, "algorithm.batch", ["got 0; write"]),
    "batch between": ("batch: 0.01", "batch: 1.5", 14, "algorithm.batch", ["fraction"]),
    "batch of one or all": (
        "batch: 0.01",
        "batch: 1.0",
        14,
        "algorithm.batch",
        ["got 1.0, which may mean one sample or all; write 1 for one"],
    ),
    "unknown upload": (
        "upload: all",
        "upload: bach",
        15,
        "algorithm.upload",
        ["one of batch, all, current, got 'bach'; did you mean 'batch'?"],
    ),
    "missing upload": (
        "  upload: all\n",
        "",
        11,
        "algorithm.upload",
        ["is missing; add it: one of batch, all, current"],
    ),
    "unknown protocol": (
        "kind: asynchronous",
        "kind: asynchronus",
        10,
        "protocol.kind",
        ["got 'asynchronus'; did you mean 'asynchronous'?"],
    ),
    "protocol without kind": (
        "{kind: asynchronous}",
        "{t: 2}",
        10,
        "protocol.kind",
        ["missing; known are asynchronous, bounded"],
    ),
    "protocol as a word": (
        "{kind: asynchronous}",
        "asynchronous",
        10,
        "protocol",
        ["mapping", "write protocol: {kind: asynchronous}"],
    ),
    "key of another protocol": (
        "{kind: asynchronous}",
        "{kind: asynchronous, t: 2}",
        10,
        "protocol.t",
        ["kind 'asynchronous'; remove it", "t_synchronous"],
    ),
    "unknown algorithm": (
        "  kind: vafl",
        "  kind: vaffl",
        12,
        "algorithm.kind",
        ["got 'vaffl'; did you mean 'vafl'?"],
    ),
    "unknown data": (
        "kind: digits",
        "kind: digit",
        5,
        "problem.data.kind",
        ["got 'digit'; did you mean 'digits'?"],
    ),
    "unknown law": (
        "law: poisson",
        "law: poison",
        9,
        "clients.compute.law",
        ["scipy.stats, got 'poison'; did you mean 'poisson'?"],
    ),
    "law by its English name": (
        POISSON,
        "law: exponential",
        9,
        "clients.compute.law",
        ["did you mean 'expon'?"],
    ),
    "law that is a function": (
        POISSON,
        "law: ttest_ind",
        9,
        "clients.compute.law",
        ["a distribution of scipy.stats"],
    ),
    "number for a law": (
        f"{{{POISSON}}}",
        "3",
        9,
        "clients.compute",
        ["mapping", "got 3; write compute: {law: constant, value: 3}"],
    ),
    "unknown parameter": (
        'mu: "2*m"',
        'lam: "2*m"',
        9,
        "clients.compute.lam",
        ["'poisson', which has mu"],
    ),
    "missing parameter": (
        'mu: "2*m", ',
        "",
        9,
        "clients.compute.mu",
        ["missing; the law 'poisson' needs mu", "add it"],
    ),
    "typo in a constant": (
        POISSON,
        "law: constant, vaule: 1",
        9,
        "clients.compute.vaule",
        ["did you mean 'value'?"],
    ),
    "negative scale": (
        'scale: "1/(2*M)"',
        'scale: "3-m"',
        9,
        "clients.compute.scale",
        ["> 0, got 0 for client 3; "],
    ),
    "parameter outside its range": (
        'mu: "2*m"',
        'mu: "2-m"',
        9,
        "clients.compute",
        ["'poisson'", "mu = -1 for client 3; see scipy.stats.poisson"],
    ),
    "durations below zero": (
        POISSON,
        "law: norm, loc: 100",
        9,
        "clients.compute",
        [">= 0, got 'norm'", "-inf s for client 1", "lognorm"],
    ),
    "shifted below zero": (
        POISSON,
        'law: expon, shift: "2-m"',
        9,
        "clients.compute",
        [">= 0, got 'expon'", "-1 s for client 3; shift it"],
    ),
    "negative constant": (
        POISSON,
        'law: constant, value: "2-m"',
        9,
        "clients.compute.value",
        [">= 0, got -1 for client 3; "],
    ),
    "time stands still": (
        POISSON,
        'law: constant, value: "m-1"',
        9,
        "clients.compute",
        ["take time, got always 0 s for client 1; give clients.compute a law"],
    ),
    "time stands still at random": (
        POISSON,
        'law: bernoulli, p: "(m-2)/2*(m-1)/(M-1)*0"',
        9,
        "clients.compute",
        ["take time, got always 0 s for client 1; "],
    ),
    "expression calls": (
        '"2*m"',
        "\"__import__('os').system('true')\"",
        9,
        "clients.compute.mu",
        ["must not call", "allowed are"],
    ),
    "expression names": (
        '"2*m"',
        '"2*n"',
        9,
        "clients.compute.mu",
        ["'n'", "allowed are numbers, m, M"],
    ),
    "expression attribute": (
        '"2*m"',
        '"m.real"',
        9,
        "clients.compute.mu",
        ["Attribute; allowed are"],
    ),
    "expression hangs": (
        '"2*m"',
        '"9**9**9"',
        9,
        "clients.compute.mu",
        ["an exponent of at most 100", "change the expression"],
    ),
    "expression divides by zero": (
        '"2*m"',
        '"1/(m-1)"',
        9,
        "clients.compute.mu",
        ["divides by zero for m = 1", "change the expression"],
    ),
    "expression in a list": ('"2*m"', '[1, 2, 3, "m"]', 9, "clients.compute.mu.3", []),
    "list too short": (
        '"2*m"',
        "[1, 2, 3]",
        9,
        "clients.compute.mu",
        ["one entry per client (4), got 3; make it"],
    ),
    "bounded delay of two batches": (
        "protocol: {kind: asynchronous}\nalgorithm:\n",
        (
            "protocol: {kind: bounded, staleness_bound: 3}\nalgorithm:\n"
            "  client_order: query_first\n"
        ),
        12,
        "algorithm.client_order",
        ["must be 'upload_first' with a bounded delay, got 'query_first'"],
    ),
    "impossible t": (
        "{kind: asynchronous}",
        "{kind: t_synchronous, t: 9}",
        10,
        "protocol.t",
        ["at most the number of clients (4), got 9; lower"],
    ),
    "two partitions": (
        "parties: 4",
        "parties: 4, groups: {a: [0]}",
        6,
        "problem.partition",
        ["either parties or groups", "remove one"],
    ),
    "duplicate partition": (
        "  l2: 0.001",
        "  partition: {kind: vertical, parties: 2}",
        7,
        "problem.partition",
        ["once", "line 6; remove one"],
    ),
    "no groups": ("parties: 4", "groups: {}", 6, "problem.partition.groups", ["add"]),
    "partition of the other family": (
        "{kind: vertical, parties: 4}",
        "{kind: iid, clients: 4}",
        6,
        "problem.partition.kind",
        ["vertical", "'vafl', got 'iid'; change"],
    ),
    "unknown metric": (
        "{every: {time: 1}}",
        "{every: {time: 1}, metrics: [test_loss, acuracy]}",
        17,
        "evaluate.metrics.1",
        ["got 'acuracy'", "test_accuracy"],
    ),
    "unknown metric to stop at": (
        "{time: 10}",
        "{time: 10, target: {acuracy: 0.1}}",
        16,
        "stop.target",
        ["got 'acuracy'; did you mean 'test_accuracy'?"],
    ),
    "no end": (
        "stop: {time: 10}",
        "stop: {}",
        16,
        "stop",
        ["at least one of time", "add one"],
    ),
    "two periods": (
        "{time: 1}",
        "{time: 1, commits: 2}",
        17,
        "evaluate.every",
        ["exactly one of time", "keep one"],
    ),
    "missing section": (
        "stop: {time: 10}\n",
        "",
        1,
        "stop",
        ["is missing; add it: a mapping with time"],
    ),
    "no clients": (
        f"clients:\n  compute: {{{POISSON}}}\n",
        "",
        1,
        "clients",
        ["is missing; add it"],
    ),
    "list for a mapping": (
        "stop: {time: 10}",
        "stop: [10]",
        16,
        "stop",
        ["must be a mapping", "got [10]; write"],
    ),
    "duplicate key": ("seed: 1", "seed: 1\nseed: 2", 3, "seed", ["line 2; remove one"]),
    "key that is a number": ("seed: 1", "1: 2", 2, "a key", ["got '1'; put it in"]),
    "key that is a list": ("seed: 1", "? [a]\n: 2", 2, "a key", ["text", "quotes"]),
    "key with a line break": ("seed: 1", '"a\\nb": 2', 2, "a\\nb", ["known are"]),
    "name with a slash": (
        "name: study",
        "name: a/b",
        1,
        "name",
        ["letters", "got 'a/b'; write for example vafl-mnist"],
    ),
    "broken YAML": (
        "stop: {time: 10}",
        "stop: {time: 10",
        17,
        "must be YAML",
        ["look for"],
    ),
    "tag of Python": ("seed: 1", "seed: !!python/name:os.x ''", 2, "seed", ["remove"]),
    "tag that lies": ("seed: 1", "seed: !!int abc", 2, "seed", ["!!int; remove it"]),
    "alias of itself": ("seed: 1", "seed: &a [*a]", 2, "a scenario", ["alias"]),
    "control character": ("seed: 1", "seed: \x01", 2, "must be text", ["remove it"]),
    "bad variant": (
        "sync: {protocol: {kind: synchronous}}",
        "sync: {protocol: {kind: synchronus}}",
        20,
        "variants.sync: protocol.kind",
        ["got 'synchronus'; did you mean 'synchronous'?"],
    ),
    "variant that contradicts the base": (
        "sync: {protocol: {kind: synchronous}}",
        (
            "sync:\n    problem:\n      l2: 1\n      partition: {parties: 2}\n"
            "    protocol: {kind: t_synchronous, t: 3}"
        ),
        24,
        "variants.sync: protocol.t",
        ["clients (2), got 3; lower it"],
    ),
    "variant with a typo": (
        "async: {}",
        "async: {sed: 2}",
        19,
        "variants.async: sed",
        ["did you mean 'seed'?"],
    ),
    "variant with a seed": (
        "async: {}",
        "async: {seed: 2}",
        19,
        "variants.async.seed",
        ["set seed at the top"],
    ),
    "variant without anything": (
        "async: {}",
        "async:",
        19,
        "variants.async",
        ["got nothing; write async: {}"],
    ),
    "bad sweep key": (
        "algorithm.step_size:",
        "algorithm.stepsize:",
        23,
        "sweep of algorithm.stepsize = 0.1 (variant async): algorithm.stepsize",
        ["did you mean 'step_size'?"],
    ),
    "sweep of no key": (
        "  algorithm.step_size:\n    - 0.1\n    - 0.2",
        "  tail: {}",
        22,
        "sweep.tail is not a known key",
        ["known are"],
    ),
    "sweep of a key that a variant sets": (
        "async: {}",
        "async: {algorithm: {step_size: 0.3}}",
        19,
        "variants.async.algorithm.step_size must be left out",
        ["algorithm.step_size is swept", "got 0.3; remove it, or give the variant"],
    ),
    "bad sweep value": (
        "- 0.2",
        "- -0.2",
        24,
        "sweep of algorithm.step_size = -0.2 (variant async): algorithm.step_size",
        [">= 0, got -0.2; write 0 or more"],
    ),
    "sweep of the seed": ("algorithm.step_size:", "seed:", 22, "sweep.seed", ["top"]),
    "sweep of one value twice": (
        "- 0.2",
        "- 0.1",
        24,
        "sweep.algorithm.step_size",
        ["got 0.1 twice; remove one"],
    ),
    "sweep of nothing": (
        "  algorithm.step_size:\n    - 0.1\n    - 0.2",
        "  algorithm.step_size: []",
        22,
        "sweep.algorithm.step_size",
        ["got []; add an entry"],
    ),
    "claim about nobody": (
        "close: async",
        "close: asinc",
        26,
        "claims.0.close",
        ["got 'asinc'; did you mean 'async'?"],
    ),
    "a claim on a metric that is not known": (
        CLAIM,
        "{faster: async, than: sync, to: {accuracy: 0.8}, says: x}",
        26,
        "claims.0.to.accuracy",
        ["(test_accuracy, test_loss), got 'accuracy'; did you mean 'test_accuracy'?"],
    ),
    "a claim on a metric that is not evaluated": (
        CLAIM,
        "{ratio: async, than: sync, of: objective, is: 1, within: 1, says: x}",
        26,
        "claims.0.of",
        ["(test_accuracy, test_loss), got 'objective'; add it there"],
    ),
    "a claim on a variant and itself": (
        "than: sync",
        "than: async",
        26,
        "claims.0.than",
        ["must be another variant than that of close, got 'async' for both"],
    ),
    "typo in a claim": (
        "close: async",
        "clsoe: async",
        26,
        "claims.0.clsoe",
        ["did you mean 'close'?"],
    ),
    "slope of nobody": (
        CLAIM,
        "{slope: asinc, metric: objective, is: -1, within: 0.1, says: x}",
        26,
        "claims.0.slope",
        ["got 'asinc'; did you mean 'async'?"],
    ),
    "slope of nobody in a list": (
        CLAIM,
        "{slope: [async, snc], metric: objective, is: -1, within: 0.1, says: x}",
        26,
        "claims.0.slope",
        ["got 'snc'; did you mean 'sync'?"],
    ),
    "claim without another side": (
        CLAIM,
        "{close: async, within: 0.1, says: x}",
        26,
        "claims.0.than",
        ["is missing; add the variant"],
    ),
    "claim of two kinds": (
        CLAIM,
        "{close: async, slope: sync, than: sync, within: 0.1, says: x}",
        26,
        "claims.0",
        ["must have exactly one of faster, fewer, higher, no_worse, close, ratio"],
    ),
    "slope beside another side": (
        CLAIM,
        "{slope: async, than: sync, metric: objective, is: -1, within: 0.1, says: x}",
        26,
        "claims.0.than",
        ["close, ratio, monotone, critical, no_worse_mean and ahead, not to slope"],
    ),
    "slope of how much": (
        CLAIM,
        "{slope: async, metric: objective, within: 0.1, says: x}",
        26,
        "claims.0",
        ["must say which slope; add is: -1 and within: 0.25"],
    ),
    "slope of an accuracy": (
        CLAIM,
        "{slope: async, is: -1, within: 0.1, says: x}",
        26,
        "claims.0.metric",
        ["got 'test_accuracy'; write for example metric: optimality_gap"],
    ),
    "slope over one horizon": (
        CLAIM,
        "{slope: [async], metric: objective, is: -1, within: 0.1, says: x}",
        26,
        "claims.0.slope",
        ["got [async]; name one without a list"],
    ),
    "slope of a number": (
        CLAIM,
        "{slope: 3, metric: objective, is: -1, within: 0.1, says: x}",
        26,
        "claims.0.slope",
        ["a variant, or a list of variants with different horizons, got 3"],
    ),
    "a mapping for a metric": (
        CLAIM,
        "{higher: async, than: async, metric: {kind: x}, says: x}",
        26,
        "claims.0.metric",
        [  # each name once, though many kinds of claims have the entry
            (
                "one of test_accuracy, test_loss, test_perplexity, test_auc, "
                "objective, gradient_norm_squared, optimality_gap, "
                "smoothed_gradient_norm_squared, consensus_distance, "
                "worker_accuracy, worker_loss, client_accuracy, "
                "client_accuracy_std, client_accuracy_worst_decile, "
                "client_accuracy_min, label_accuracy"
            ),
            ", got {'kind': 'x'}; take one of them",
        ],
    ),
    "slope that is true": (
        CLAIM,
        "{slope: async, metric: objective, is: true, within: 0.1, says: x}",
        26,
        "claims.0.is",
        ["must be a number, got true; write"],
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_one_line_with_its_place_and_remedy(
    case: str, tmp_path: Path
) -> None:
    old, new, line, key, words = BAD[case]
    said = complaint(GOOD, old, new, tmp_path)
    assert said.startswith(f"{line}: {key}"), said
    for word in words:
        assert word in said


def test_all_mistakes_are_told_in_the_order_of_the_file() -> None:
    text = GOOD.replace("time: 10", "time: -1").replace("l2: 0.001", "l2: -1")
    text = text.replace("name: study\n", "").replace("seed: 1", "seed: 1\nreplicats: 2")
    with pytest.raises(ScenarioError) as caught:
        loads(text, "f")
    said = str(caught.value).split("\n")
    assert [line.split()[:2] for line in said] == [
        ["f:2:", "replicats"],
        ["f:7:", "problem.l2"],
        ["f:16:", "stop.time"],
        ["f:1:", "name"],
    ]


def test_mistakes_beyond_ten_are_counted() -> None:
    wrong = "".join(f"wrong_{number}: 1\n" for number in range(12))
    with pytest.raises(ScenarioError) as caught:
        loads(GOOD + wrong, "f")
    said = str(caught.value).split("\n")
    assert len(said) == 11
    assert said[-1] == "and 2 more mistakes"
    with pytest.raises(ScenarioError) as again:
        validated(yaml.safe_load(GOOD + wrong))
    assert again.value.args == tuple(line.partition(": ")[2] or line for line in said)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ["no such file; check the path"]),
        (b"", [":1: must hold a scenario", "empty; begin with name"]),
        (b"# nothing\n", [":1: must hold a scenario", "empty; begin with name"]),
        (b"- a\n- b\n", [":1: must be a mapping", "got a list; begin with name"]),
        (b"name\n", [":1: must be a mapping", "got a str; begin with name"]),
        (b"a: 1\n---\nb: 1\n", [":2: must be YAML", "look for"]),
        (b"a: 1\n\tb: 2\n", [":2: must be YAML", "look for"]),
        (b"a: b: c\n", [":1: must be YAML", "look for"]),
        (b"\xff\xfe\x00", ["UTF-8, got the byte 0xff", "save it as UTF-8"]),
        (b"x: " + b"[" * 2000, [":1: is nested too deep; flatten it"]),
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
    message = str(caught.value)
    assert message.startswith(str(path))
    assert message.isprintable()
    for word in words:
        assert word in message


def test_a_folder_is_no_scenario(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"got a folder; name a \.yaml file"):
        read(tmp_path)


def test_the_good_scenario_is_good() -> None:
    scenario = loads(GOOD, "good.yaml")
    assert scenario.name == "study"
    assert scenario.num_clients == 4


def test_a_mistake_that_planning_finds_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("name: a\nproblem:\n  partition:\n    kind: vertical\n")
    for said, line in (
        ("problem.partition.groups.a must hold a column, got none; add one", 3),
        ("problem.data must be there", 2),
        ("every run failed", None),
    ):
        with pytest.raises(ScenarioError) as error, placing(path):
            raise ScenarioError(said)
        where = "" if line is None else f"{path}:{line}: "
        assert str(error.value) == f"{where}{said}"
