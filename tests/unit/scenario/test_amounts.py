"""Amounts that no machine has room or time for: one line, before anything is run."""

from typing import Any

import pytest
import yaml

from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.scenario.reading import loads_any, validated
from stalesim.simulator.scenario.scenario import check_amounts
from stalesim.simulator.world import presence
from tests.unit.scenario.mistakes import TABLES

TREE = yaml.safe_load(TABLES["scenario methods"]["good"])
TREE |= {"stop": {"time": 6, "epochs": 3}, "evaluate": {"every": {"time": 1}}}


@pytest.mark.parametrize(
    ("every", "said"),
    [
        (
            {"time": 1e-9},
            r"time must leave at most 1,000,000 .*got 6,000,000,000",
        ),
        ({"epochs": 1e-9}, r"every\.epochs must .*, got 3,000,000,000; evaluate less"),
    ],
)
def test_evaluations_are_counted(every: dict[str, float], said: str) -> None:
    scenario = validated(TREE | {"evaluate": {"every": every}})
    with pytest.raises(ScenarioError, match=said):
        check_amounts(scenario, 8, 1)


def test_samples_of_a_commit_are_counted() -> None:
    scenario = validated(TREE)
    check_amounts(scenario, 8 * 1000, 1000)
    with pytest.raises(ScenarioError, match=r"samples of the 4 jobs .*got 80,000,000"):
        check_amounts(scenario, 2 * 10**7, 4)


def test_clients_that_come_and_go_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "MOST_TURNS", 1000)

    def shortly(_: Any) -> float:
        return 1e-9

    said = "client 1 comes and goes more than 1,000 times, or too shortly"
    with pytest.raises(ScenarioError, match=said):
        presence.Renewal(shortly, shortly, 1).since(0, 6.0)
    presence.Renewal(lambda _: 1.0, lambda _: 1.0, 1).since(0, 999.0)


def test_a_client_that_the_clock_never_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    """After 1e9 s, 1e-9 s are nothing in float64: it is never there again."""
    monkeypatch.setattr(presence, "MOST_TURNS", 100)
    away = presence.Renewal(lambda _: 1e-9, lambda _: 1e9, 1)
    with pytest.raises(ScenarioError, match="too shortly for the clock"):
        presence.since_all([away], 0, 1.0)


LAWS = {
    "{law: expon, loc: 1.0e+12, scale: 1.0e-6}": (
        "clients.compute.scale must be larger than the clock's resolution near "
        "1e+12 s, 0.00012 s, got 1e-06"
    ),
    "{law: expon, scale: 1.0e+300}": "loc, scale and shift of at most 1e+15 s",
    "{law: constant, value: 1.0e+308}": "clients.compute.value must be at most 1e+15",
}


@pytest.mark.parametrize("law", LAWS)
def test_durations_that_no_clock_counts(law: str) -> None:
    text = (
        f"name: clock\nclients: {{number: 2, compute: {law}}}\n"
        f"protocol: {{kind: asynchronous}}\nstop: {{commits: 2}}\n"
    )
    with pytest.raises(ScenarioError) as error:
        loads_any(text, "clock.yaml")
    assert LAWS[law] in str(error.value)
    assert "\n" not in str(error.value)
