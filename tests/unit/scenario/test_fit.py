"""Scenarios against their data: what does not fit ends in one line."""

import pytest

from stalesim.simulator.engine.checking import check
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.scenario.reading import loads
from stalesim.simulator.scenario.study import expand
from tests.unit.scenario.mistakes import TABLES, cases, changed


@pytest.mark.parametrize(("table", "case"), cases("unfit"))
def test_what_does_not_fit_is_one_line(table: str, case: str) -> None:
    changes, begin = TABLES[table]["unfit"][case]
    (run,) = expand(loads(changed(table, changes), "unfit.yaml"))
    with pytest.raises(ScenarioError) as caught:
        check(run)
    assert str(caught.value).startswith(begin)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(("table", "case"), cases("fine"))
def test_what_fits_is_accepted(table: str, case: str) -> None:
    for run in expand(loads(changed(table, TABLES[table]["fine"][case]), "good.yaml")):
        check(run)
