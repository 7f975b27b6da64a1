"""Laws are judged for every client, with the clients' own parameters."""

from typing import Any, Literal

import numpy as np
import pytest

from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.world.laws.base import Law, check_cycle
from stalesim.simulator.world.laws.distributions import Constant, Scipy


def law(**entries: Any) -> Scipy:
    return Scipy.model_validate(entries)


@pytest.mark.parametrize(
    "entries",
    [
        {"law": "expon"},
        {"law": "lognorm", "s": 0.5, "scale": "m"},
        {"law": "pareto", "b": 0.5},  # of infinite mean, which is allowed
        {"law": "levy"},
        {"law": "poisson", "mu": "2*m", "scale": "1/(2*M)", "shift": 1e-6},
        {"law": "poisson", "mu": [0, 1, 2], "shift": "1/m"},
        {"law": "truncnorm", "a": -1, "b": 3, "loc": 1},
        {"law": "uniform", "loc": 1, "shift": -1},
        {"law": "pareto", "b": 2, "loc": 0.1, "scale": 0.2, "shift": -0.3},
        {"law": "randint", "low": 0, "high": "m+1"},
        {"law": "nbinom", "n": 3, "p": 0.5},
        {"law": "binom", "n": "m", "p": 0.5, "loc": 2, "scale": 0.1},
    ],
)
def test_laws_of_durations_pass(entries: dict[str, Any]) -> None:
    assert law(**entries).check(3, "clients.compute").all()


def test_it_says_who_never_takes_time() -> None:
    assert Constant(value="m-1").check(3, "x").tolist() == [False, True, True]
    found = law(law="poisson", mu="m-1").check(3, "x")
    assert found.tolist() == [False, True, True]
    found = law(law="bernoulli", p=[0, 0.5, 0], shift=[0, 0, 1]).check(3, "x")
    assert found.tolist() == [False, True, True]


def test_a_cycle_takes_time_if_any_of_its_stages_does() -> None:
    first, others = Constant(value="max(0, 2-m)"), Constant(value="m-1")
    check_cycle({"clients.idle": first, "clients.compute": others}, 3)
    with pytest.raises(ScenarioError, match="for client 2"):
        check_cycle({"clients.idle": first}, 3)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"law": "gamma", "a": "m-2"}, r"a = -1 for client 1; see scipy\.stats\.gamma"),
        ({"law": "binom", "n": 2.5, "p": 0.5}, r"n = 2\.5, p = 0\.5 for client 1"),
        ({"law": "randint", "low": 3, "high": 3}, "'randint' does not"),
        ({"law": "uniform", "loc": "1-m"}, r"reaches down to -1 s for client 2"),
        ({"law": "poisson", "mu": 1, "loc": -2, "scale": 2}, r"down to -4 s"),
        ({"law": "norm", "scale": 1e-9}, r"down to -inf s for client 1"),
        (
            {"law": "expon", "scale": [1, 0, 1]},
            r"scale must be > 0, got 0 for client 2",
        ),
        ({"law": "gamma"}, r"\.a is missing; the law 'gamma' needs a"),
        ({"law": "expon", "a": 1}, r"no shape parameters besides loc.*; remove it"),
        ({"law": "expon", "rate": 2}, r"scale and shift; write scale: 1/rate$"),
        ({"law": "poisson", "rate": 2}, r"shift; write law: expon with scale: 1/rate"),
        ({"law": "poisson"}, r"mu is missing.*; add it or, for intervals, law: expon"),
        ({"law": "gama", "a": 1}, "did you mean 'gamma'"),
        ({"law": "rv_continuous"}, "a distribution of scipy.stats"),
        ({"law": "__class__"}, "a distribution of scipy.stats"),
    ],
)
def test_other_laws_are_refused(entries: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words) as caught:
        law(**entries).check(3, "clients.compute")
    assert str(caught.value).startswith("clients.compute")


def test_many_clients_are_judged_in_time() -> None:
    law(law="poisson", mu="1 + m % 7", scale="1/M").check(10_000, "x")


class Never(Law):
    """A law of a plug-in that takes time for the second client alone."""

    law: Literal["never"] = "never"

    def check(self, num_clients: int, name: str) -> np.ndarray:
        del name
        return np.arange(num_clients) == 1


def test_a_law_of_a_plug_in_answers_for_itself() -> None:
    with pytest.raises(ScenarioError, match="got always 0 s for client 1"):
        check_cycle({"clients.compute": Never()}, 2)
    check_cycle({"clients.idle": Never(), "clients.compute": Constant(value="2-m")}, 2)
    with pytest.raises(ValueError, match="no closed form is known for the law 'never'"):
        Never().closed_form(2)
