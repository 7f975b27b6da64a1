"""What is allowed, but hardly meant."""

import pytest

from stalesim.simulator.scenario.reading import loads, loads_any
from stalesim.simulator.scenario.remarks import TOGETHER, remarks

TEXT = """\
name: study
problem:
  data: {kind: digits, scale: unit}
  partition: {kind: vertical, parties: 4}
clients:
  compute: {law: expon, scale: 1}
protocol: {kind: asynchronous}
algorithm: {kind: vafl, step_size: 0.1, batch: 8, upload: all}
stop: {time: 20}
evaluate: {every: {time: 50}}
"""
SAID = (
    "evaluate.every.time is 50 virtual s, but runs end at 20: they are evaluated at "
    "their beginning and end alone"
)


def test_a_period_beyond_the_end_is_remarked_once() -> None:
    assert remarks(loads(f"{TEXT}replicates: 3\n", "x.yaml")) == [SAID]


@pytest.mark.parametrize(
    ("upload", "protocol", "remarked"),
    [
        ("all", "synchronous", True),
        ("batch", "synchronous", False),
        ("all", "t_synchronous, t: 4", False),
        ("all", "centralised", False),
    ],
)
def test_an_upload_of_more_than_the_common_batch_is_remarked(
    upload: str, protocol: str, *, remarked: bool
) -> None:
    text = TEXT.replace("50", "5").replace("upload: all", f"upload: {upload}")
    found = remarks(loads(text.replace("asynchronous", protocol), "x.yaml"))
    said = "parties upload the common batch alone with the protocol synchronous: write"
    assert found == remarked * [f"{said} algorithm.upload: batch there"]


def test_variants_that_are_the_same_are_remarked() -> None:
    other = TEXT.replace("time: 50", "time: 5")
    same = (
        "variants: {a: {}, b: {algorithm: {upload: all}}, c: {algorithm: {batch: 9}}}"
    )
    (said,) = remarks(loads(f"{other}{same}\n", "x.yaml"))
    assert said.startswith("variants a and b are the same: ")
    swept = f"{same}\nsweep: {{algorithm.step_size: [0.1, 0.2]}}\n"
    assert said in remarks(loads(other + swept, "x.yaml"))


def test_many_variants_that_are_the_same_are_one_remark() -> None:
    text = TEXT.replace("time: 50", "time: 5")
    same = ", ".join(f"v{i}: {{}}" for i in range(50))
    (said,) = remarks(loads(f"{text}variants: {{{same}}}\n", "x.yaml"))
    assert said.startswith("variants v0 and v1 are the same: ")
    assert said.endswith("; so are 48 more pairs")


def test_remarks_on_many_variants_are_counted() -> None:
    late = ", ".join(f"v{i}: {{stop: {{time: {i + 1}}}}}" for i in range(40))
    said = remarks(loads(f"{TEXT}variants: {{{late}}}\n", "x.yaml"))
    assert len(said) == 21
    assert said[-1] == "20 more remarks like these"


@pytest.mark.parametrize(
    "line",
    [
        "evaluate: {every: {time: 20}}",
        "stop: {time: 50}",
        "stop: {commits: 20}",  # nobody knows which of the two comes first
        "evaluate: {every: {commits: 50}}",
    ],
)
def test_other_periods_are_not_remarked(line: str) -> None:
    others = [old for old in TEXT.splitlines() if old[:4] != line[:4]]
    assert remarks(loads("\n".join([*others, line]), "x.yaml")) == []


def test_the_variant_or_swept_value_that_ends_early_is_found() -> None:
    variants = "variants: {long: {stop: {time: 60}}, short: {}}\n"
    assert remarks(loads(TEXT + variants, "x.yaml")) == [
        SAID.replace("runs end", "those of short end")
    ]
    swept = "sweep: {stop.time: [10, 60, 20]}\n"
    assert [line.split(":")[0] for line in remarks(loads(TEXT + swept, "x.yaml"))] == [
        f"evaluate.every.time is 50 virtual s, but runs end at {end}"
        for end in (10, 20)
    ]


def test_batching_on_a_cpu_is_remarked() -> None:
    text = TEXT.replace("{time: 50}", "{time: 5}")
    assert remarks(loads(text + "engine: {mode: batched}\n", "x.yaml")) == [TOGETHER]
    assert remarks(loads(text + "engine: {mode: compiled}\n", "x.yaml")) == []


def test_more_contributions_than_clients_are_remarked() -> None:
    buffered = TEXT.replace("time: 50", "time: 5").replace("parties: 4", "clients: 4")
    buffered = buffered.replace("vertical", "iid").replace(", upload: all", "")
    buffered = buffered.replace("vafl", "fed_buff")
    for size, said in ((4, 0), (50, 1)):
        text = buffered.replace("asynchronous}", f"buffered, size: {size}}}")
        found = remarks(loads(text, "x.yaml"))
        assert len(found) == said
    assert "takes 50 contributions, but there are 4 clients: it has sev" in found[0]


HORIZONTAL = """\
name: study
problem:
  data: {kind: digits, scale: unit}
  partition: {kind: iid, clients: 4}
clients:
  compute: {law: expon, scale: 1}
stop: {time: 20}
evaluate: {every: {time: 5}}
"""
ROUTED = "{kind: routed, tasks: 5, weights: m"


@pytest.mark.parametrize(
    ("protocol", "weight", "said"),
    [
        ("{kind: collect, harmonic_mean: 2}", "{kind: constant}", "malenia takes"),
        (ROUTED + "}", "{kind: inverse_share, shares: 1}", "do not count alike"),
        (ROUTED + "}", "{kind: inverse_share, shares: 2 * m}", ""),
        (ROUTED + ", route: shuffled}", "{kind: inverse_share, shares: m}", "alike"),
        (ROUTED + ", route: back}", "{kind: inverse_share, shares: 1}", ""),
        ("{kind: collect, count: 2}", "{kind: constant}", ""),
    ],
)
def test_clients_that_count_more_than_others_are_remarked(
    protocol: str, weight: str, said: str
) -> None:
    entries = f"{{kind: sgd, step_size: 0.1, batch: 8, weight: {weight}}}"
    text = f"{HORIZONTAL}protocol: {protocol}\nalgorithm: {entries}\n"
    found = remarks(loads(text, "x.yaml"))
    assert len(found) == bool(said)
    assert all(said in line for line in found)


WAITS = "protocol={beyond: wait, max_staleness: "
OWN = "clients.groups={a: {number: 4, compute: {law: expon}}}"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("clients.selection={concurrency: 5}", "is 5, but there are 4 clients: all "),
        ("clients.selection={concurrency: 4}", ""),
        (WAITS + "2}", "max_staleness 2 with beyond: wait lets 3 of 4 clients work"),
        (WAITS + "3}", ""),
        ("protocol={max_staleness: 2}", ""),
        (OWN, "no client uses clients.compute: each group has its own"),
        (OWN.replace("4, compute: {law: expon}", "4"), ""),
        ("sweep.algorithm.local_steps=[1, 4]", "with clients.compute_per: step"),
        ("sweep.algorithm.learning_rate=[1, 4]", ""),
    ],
)
def test_entries_that_do_less_than_they_seem_are_remarked(
    entry: str, said: str
) -> None:
    algorithm = "{kind: fed_async, step_size: 0.1, batch: 8, local_steps: 2}"
    text = f"{HORIZONTAL}protocol: {{kind: asynchronous}}\nalgorithm: {algorithm}\n"
    found = remarks(loads(text, "x.yaml", [entry]))
    assert len(found) == bool(said)
    assert all(said in line for line in found)
    if "local_steps" in entry:
        assert not remarks(loads(text, "x.yaml", [entry, "clients.compute_per=step"]))


ALONE = """\
name: alone
clients: {number: 4, compute: {law: expon}, selection: {concurrency: 9}}
protocol: {kind: buffered, size: 5}
stop: {time: 9}
variants: {a: {}, b: {}}
"""


def test_a_world_alone_is_remarked() -> None:
    said = " ".join(remarks(loads_any(ALONE, "x.yaml")))
    for words in ("variants a and b are", "a commit of a takes 5", "concurrency is 9"):
        assert words in said
