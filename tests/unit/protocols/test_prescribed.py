"""Prescribed staleness: its law, whatever the clients."""

import numpy as np
import pytest
from scipy import stats

from stalesim.simulator.catalogue.protocols.prescribed import Prescribed
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.world.laws.distributions import Scipy
from tests.support import everything, played
from tests.unit.protocols.replay import (
    check_conservation,
    replay_registers,
    staleness,
    workers,
)


@pytest.mark.parametrize("most", [0, 4, 16])
def test_staleness_is_uniform_up_to_its_most(most: int) -> None:
    rows, jobs, _ = everything(played(Prescribed(most=most), None, 20, commits=4000))
    found = np.array(staleness(rows))
    assert (found[:most] <= np.arange(most)).all()
    counts = np.bincount(found[most:], minlength=most + 1)
    assert counts.size == most + 1
    assert not stats.chisquare(counts).pvalue <= 1e-3  # NaN of one value
    replay_registers(rows)
    check_conservation(rows, jobs, 20)


def test_staleness_depends_neither_on_the_client_nor_on_what_was_before() -> None:
    rows, *_ = everything(played(Prescribed(most=4), None, 5, commits=8000))
    found, who = np.array(staleness(rows)), np.array([w for (w,) in workers(rows)])
    table = np.array(
        [[(found[who == k] == d).sum() for d in range(5)] for k in range(5)]
    )
    # All five clients are busy with a commit each, as often in each place.
    assert stats.chi2_contingency(np.histogram2d(found[:-1], found[1:], 5)[0])[1] > 1e-3
    assert table.sum(1).min() > 1200


def test_steps_take_their_time() -> None:
    protocol = Prescribed(most=2, step=Scipy(law="expon", scale=3))
    rows, *_ = everything(played(protocol, None, 9, commits=4000))
    assert np.diff(rows.time).mean() == pytest.approx(3, rel=0.06)


def test_more_staleness_than_other_clients_is_refused() -> None:
    world = {
        "name": "w",
        "clients": {"number": 4, "compute": {"law": "expon"}},
        "stop": {"commits": 5},
    }
    with pytest.raises(
        ValueError, match="most must be less than the number of clients"
    ):
        WorldScenario.model_validate(
            world | {"protocol": {"kind": "prescribed", "most": 4}}
        )
