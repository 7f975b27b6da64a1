"""Messages are counted by when they were sent, and cost what accountants say."""

import math

import numpy as np
import pytest

from stalesim.simulator.parts.errors import ScenarioError, UserError
from stalesim.simulator.privacy.ledger import Ledger, epsilon, limits
from stalesim.simulator.privacy.parts import make
from stalesim.simulator.privacy.releases import (
    Calibrated,
    Gaussian,
    Guarantee,
    Pure,
    Release,
)


def promise(release: Release, *, formal: bool = True) -> Guarantee:
    return Guarantee(release, formal, "because", "noise", "a sample")


def test_a_message_counts_from_when_it_was_sent_in_whatever_order_it_is_told() -> None:
    generator = np.random.default_rng(3)
    times = np.sort(generator.uniform(0, 10, 12))
    client = generator.integers(0, 3, 500)
    sent = np.round(generator.uniform(0, 10, 500), 1)
    times[4] = 5.0  # at which something is sent
    sent[:5], sent[5:10] = 5.0, np.nan
    times.sort()
    ledger = Ledger([promise(Pure(0.1))] * 3, ["basic"], 1e-5)
    told = np.array_split(generator.permutation(500), 13)
    ledger.send(client[told[0]], sent[told[0]])
    for time, some in zip(times, told[1:], strict=True):
        ledger.evaluate(time)
        ledger.send(client[some], sent[some])
    expected = [
        [int(((sent <= time) & (client == k)).sum()) for k in range(3)]
        for time in times[:-1]
    ]
    ended = [int((~np.isnan(sent) & (client == k)).sum()) for k in range(3)]
    np.testing.assert_array_equal(ledger.counts(), [*expected, ended])


def test_every_accountant_says_what_it_costs() -> None:
    made = [promise(Pure(0.1)), promise(Pure(0.2), formal=False), promise(Pure(0.1))]
    ledger = Ledger(made, ["optimal", "rdp"], 1e-6)
    for time, client in ((1.0, 0), (2.0, 1), (3.0, 1), (4.0, 0)):
        ledger.evaluate(time)
        ledger.send(np.array([client] * 7), np.full(7, time))
    entries = list(ledger.entries())
    assert [entry["time"][0] for entry in entries] == [1, 2, 3, 4]
    last = entries[-1]
    assert last["client"].tolist() == [0, 0, 1, 1, 2, 2]
    assert last["releases"].tolist() == [14, 14, 14, 14, 0, 0]
    assert last["accountant"].tolist() == [0, 1] * 3
    assert last["formal"].tolist() == [True, True, False, False, True, True]
    for place, (release, name) in enumerate(
        (release, name)
        for release in (Pure(0.1), Pure(0.2))
        for name in ledger.accountants
    ):
        accountant = make(name)
        accountant.release(14, release)
        assert last["epsilon"][place] == accountant.epsilon(1e-6)
    assert (last["epsilon"][4:] == 0).all()


def test_an_approximation_of_a_proved_release_is_not_proved() -> None:
    made = [promise(Gaussian(1.0, 0.1)), promise(Gaussian(1.0))]
    ledger = Ledger(made, ["rdp", "gdp"], 1e-5)
    ledger.evaluate(0.0)
    (entry,) = ledger.entries()
    assert entry["formal"].tolist() == [True, False, True, True]


def test_what_protects_nothing_costs_infinity() -> None:
    assert epsilon(Gaussian(0.0), 1, "rdp", 1e-5) == math.inf
    assert epsilon(Pure(math.inf), 1, "optimal", 1e-5) == math.inf
    assert epsilon(Pure(math.inf), 0, "optimal", 1e-5) == 0


def _budget(epsilon: float, accountant: str = "optimal") -> Calibrated:
    return Calibrated("privacy.budget", None, epsilon, 1e-5, accountant)


def test_a_budget_allows_as_many_messages_as_fit_in_it() -> None:
    made = [promise(Pure(0.1)), promise(Pure(0.5)), promise(Pure(0.1))]
    most = limits(made, _budget(2.0))
    assert most[0] == most[2]
    for count, guarantee in zip(most, made, strict=True):
        assert epsilon(guarantee.release, count, "optimal", 1e-5) <= 2.0
        assert epsilon(guarantee.release, count + 1, "optimal", 1e-5) > 2.0
    with pytest.raises(ScenarioError, match=r"client 2 costs epsilon 0\.5 by basic"):
        limits(made, _budget(0.3, "basic"))


def test_an_accountant_that_has_no_such_release_is_refused() -> None:
    with pytest.raises(UserError, match="pld has no distribution"):
        Ledger([promise(Gaussian(1.0, 0.1))], ["pld"], 1e-5)
