"""Overrides replace single entries, and are named in messages about them."""

import pytest

from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.scenario.reading import loads
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.world.laws.distributions import Constant, Scipy

TEXT = """\
name: study
seed: 1
problem:
  data: {kind: digits}
  partition: {kind: vertical, parties: 4}
clients:
  compute: {law: gamma, a: 2, scale: 3}
protocol: {kind: t_synchronous, t: 2}
algorithm: {kind: vafl, step_size: 0.1, batch: 8, upload: all}
stop: {time: 10}
evaluate: {every: {time: 1}}
variants:
  one: {protocol: {t: 1}}
"""


def overridden(*overrides: str) -> Scenario:
    return loads(TEXT, "file.yaml", overrides)


def test_a_number_is_replaced_and_read_as_yaml() -> None:
    assert overridden("seed=010").seed == 10
    assert overridden("stop.time=1e-3").stop.time == 0.001
    assert overridden("source='a: b = c'").source == "a: b = c"
    assert overridden("seed=2", "seed=3").seed == 3


@pytest.mark.parametrize(
    "override", ["{}=1", "problem.{}=1", "sweep.problem.{}=[1, 2]", "variants.one.{}=1"]
)
def test_a_key_of_thousands_of_parts_is_one_line(override: str) -> None:
    with pytest.raises(ScenarioError, match=r"at most 100 parts, got 5,00\d") as error:
        overridden(override.format(".".join("a" * 5000)))
    assert "\n" not in str(error.value)


CHAIN = """\
name: chain
problem: {data: {kind: digits}, partition: {kind: iid, clients: 4}}
clients: {compute: {law: expon}}
protocol: {kind: asynchronous}
algorithm: {learning_rate: 0.1, batch_size: 4, chain: [{kind: local_work}, {kind: weigh}, {kind: mix}]}
stop: {commits: 2}
evaluate: {every: {commits: 2}}
"""  # noqa: E501


def test_an_entry_of_a_list_is_known_by_its_position() -> None:
    found = loads(CHAIN, "it", ["algorithm.chain.0.mu=0.5"]).algorithm.chain
    assert [stage.kind for stage in found] == ["local_work", "weigh", "mix"]
    assert found[0].proximal == 0.5
    wrong = "algorithm.chain.0.mu=-1"
    with pytest.raises(ScenarioError, match=rf"^override '{wrong}': algor.*\.mu must"):
        loads(CHAIN, "it", [wrong])
    with pytest.raises(ScenarioError, match=r"lists by position, but algorithm\.chain"):
        loads(CHAIN, "it", ["algorithm.chain.3.mu=1"])
    swept = ["sweep.algorithm.chain.0.mu=[1, 2]", "algorithm.chain.0.mu=3"]
    with pytest.raises(ScenarioError, match="must be left out where alg"):
        loads(CHAIN, "it", swept)


def test_a_mapping_is_merged() -> None:
    stop = overridden("stop={commits: 5}").stop
    assert (stop.commits, stop.time) == (5, 10)


def test_an_empty_mapping_empties() -> None:
    assert overridden("variants={}").variants == {}
    assert overridden("sweep.seed=[1]", "sweep={}").sweep == {}
    found = overridden("variants.one={}")
    assert found.variants == {"one": {}}
    assert expand(found)[0].scenario.protocol.t == 2
    with pytest.raises(ScenarioError, match="clients must set the duration of a job"):
        overridden("clients={}")


def test_null_removes() -> None:
    every = overridden("evaluate.every={commits: 5, time: null}").evaluate.every
    assert (every.commits, every.time) == (5, None)
    assert overridden("variants=null").variants == {}


def test_another_kind_or_law_replaces_the_whole() -> None:
    assert overridden(
        "protocol={kind: synchronous}", "variants=null"
    ).protocol.kind == ("synchronous")
    clients = overridden("clients.compute={law: constant, value: m}").clients
    assert clients is not None
    assert clients.compute == Constant(value="m")
    clients = overridden("clients.compute={law: gamma, a: 5}").clients
    assert clients is not None
    assert clients.compute == Scipy.model_validate({"law": "gamma", "a": 5, "scale": 3})


def test_a_missing_section_is_made() -> None:
    clients = overridden("clients.idle.law=expon").clients
    assert clients is not None
    assert clients.idle == Scipy(law="expon")


def test_a_sweep_keeps_its_dotted_key() -> None:
    scenario = overridden("sweep.algorithm.step_size=[0.1, 0.2]")
    assert scenario.sweep == {"algorithm.step_size": (0.1, 0.2)}


def test_a_variant_can_be_overridden() -> None:
    scenario = overridden("variants.one.protocol.t=4")
    assert scenario.variants == {"one": {"protocol": {"t": 4}}}
    scenario = overridden("variants.one={stop: {time: null, commits: 2}}")
    assert scenario.variants["one"]["stop"] == {"time": None, "commits": 2}
    (run,) = expand(scenario)
    assert (run.scenario.stop.time, run.scenario.stop.commits) == (None, 2)
    scenario = overridden("stop.commits=3", "variants.one.stop.time=null")
    assert expand(scenario)[0].scenario.stop.time is None
    assert overridden("variants.one=null").variants == {}


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("seed", ["must be dotted.key=value, such as"]),
        ("=1", ["must be dotted.key=value, such as"]),
        ("a..b=1", ["must be dotted.key=value, such as"]),
        ("seed=", ["must have a value", "seed=null"]),
        ("sede=1", ["sede", "did you mean 'seed'?"]),
        ("clints.compute.scale=1", ["clints", "did you mean 'clients'?"]),
        ("algorithm.stepsize=1", ["algorithm.stepsize", "mean 'step_size'?"]),
        ("algorithm.step_size.x=1", ["algorithm.step_size is 0.1; replace it"]),
        ("protocol.kind=synchronus", ["'synchronus'; did you mean 'synchronous'?"]),
        ("protocol.kind=bounded", ["protocol.t is not a key", "-s 'protocol={...}'"]),
        ("protocol={kind: bounded}", ["protocol.max_staleness is missing; add it"]),
        ("clients.compute.law=expon", ["compute.a", "it is in file.yaml:7", "-s '"]),
        ("clients.idle.law=gamma", ["clients.idle.a is missing"]),
        ("protocol.t=9", ["protocol.t", "(4), got 9; lower"]),
        ("stop.time=-1", ["stop.time", "> 0, got -1; write"]),
        ("stop={time: [", ["must be YAML", "look for"]),
        ("variants.one.protocol.t=9", ["variants.one: protocol.t", "got 9"]),
        ("sweep.algorithm.batch=[0]", ["sweep of algorithm.batch = 0"]),
        ("sweep.seed=[1, 2]", ["sweep.seed", "at the top"]),
        ("sweep.stop.time.1=3", ["whole list: -s 'sweep.stop.time=[...]'"]),
        ("sweep.stop.time[1]=3", ["whole list: -s 'sweep.stop.time=[...]'"]),
        ("evaluate.every=5", ["write every: {time: 5}, or commits"]),
        ("algorithm.compressor={}", ["write algorithm.chain"]),
        ("stop.time=20s", ["a number, got '20s'; leave out its unit; times are sec"]),
        ("clients.compute.scale=8s", ["an expression, without units (times are sec"]),
        ("clients.upload={bandwidth: 1 Mbit/s}", ["per second: 1 Mbit/s is 125_000"]),
    ],
)
def test_a_bad_override_is_named(override: str, words: list[str]) -> None:
    with pytest.raises(ScenarioError) as caught:
        overridden("seed=5", override)
    message = str(caught.value)
    assert message.startswith(f"override {override!r}")
    assert all(line.isprintable() for line in message.split("\n"))
    for word in words:
        assert word in message


def test_what_an_override_breaks_elsewhere_is_told_where_it_stands() -> None:
    with pytest.raises(ScenarioError, match=r"^file\.yaml:8: protocol\.t .* \(1\)"):
        overridden("problem.partition.parties=1")


SWEPT = "sweep={algorithm.step_size: [0.1, 0.2]}"


def test_an_override_that_the_sweep_would_replace_is_refused() -> None:
    value = "algorithm.step_size=1"
    assert overridden(value, SWEPT, "sweep=null").algorithm.step_size == 1
    assert overridden("algorithm={step_size: 1}", SWEPT).algorithm.step_size == 1
    with pytest.raises(ScenarioError) as caught:
        overridden(value, SWEPT)
    said = "must be left out where algorithm.step_size is swept"
    assert f"override {value!r} {said}" in str(caught.value)
