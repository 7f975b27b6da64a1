"""Computing power that changes over time, against a slow integral and its limits."""

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.gossip import Gossip
from stalesim.simulator.parts.errors import DataError
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.power import PowerTable
from tests.support import everything, played

UNIT = {"law": "constant", "value": 1}


def slow_duration(times, values, period, start: float, work: float) -> float:
    """Adds up the power in steps of a thousandth of a second."""
    dt, done, time = 1e-3, 0.0, start
    while done < work - 1e-9:
        within = time % period if period else time
        at = max(i for i, t in enumerate(times) if t <= within + 1e-12)
        done += values[at] * dt
        time += dt
    return time - start


@pytest.mark.parametrize("period", [None, 5.0])
def test_a_job_ends_when_the_integral_of_its_power_is_reached(period) -> None:
    """The slow sum is late by at most two steps and early by the error of one."""
    rng = np.random.default_rng(3)
    for _ in range(12):
        times = [0.0, *np.round(np.sort(rng.uniform(0.2, 4.8, 3)), 3)]
        values = [*rng.uniform(0, 3, 3) * rng.integers(0, 2, 3), rng.uniform(0.3, 2)]
        start = round(rng.uniform(0, 9), 3)
        work = rng.uniform(0.2, 6)
        found = PowerTable(times, values, period).duration(start, work)
        slow = slow_duration(times, values, period, start, work)
        assert abs(found - slow) < 6e-3, (times, values, start, work)


def test_work_that_ends_with_a_period_s_power_does_not_wait_for_its_end() -> None:
    table = PowerTable([0, 3], [1, 0], 10)
    assert table.duration(0, 3) == 3
    assert table.duration(0, 6) == 13
    assert table.duration(2, 3) == 10
    assert table.duration(4, 1) == 7
    assert table.duration(4, 0) == 0


def ends(protocol=None, **clients) -> np.ndarray:
    tree = {"number": 3, "compute": UNIT, **clients}
    made = played(
        protocol or Asynchronous(), Clients.model_validate(tree), 3, commits=60
    )
    rows, *_ = everything(made)
    return np.column_stack([rows.time, rows.worker[:, 0], rows.read_version[:, 0]])


def test_a_constant_power_divides_the_times_of_the_law() -> None:
    compute = {"law": "gamma", "a": 2, "scale": "m"}
    powered = ends(compute=compute, power={"times": [0], "values": [2]})
    plain = ends(compute={"law": "scaled", "of": compute, "scale": 0.5})
    np.testing.assert_allclose(powered, plain, rtol=1e-12)


def test_no_power_at_times_is_absence_that_jobs_end_before() -> None:
    """The jobs fit into every time of presence: they end with it."""
    quarter = {"law": "constant", "value": "m/8"}
    power = {"times": [0, 1.5], "values": [1, 0], "period": 4, "phase": "0.75*(m-1)"}
    away = {"kind": "periodic", "period": 4, "on": 0.375, "phase": "0.75*(m-1)"}
    powered = ends(compute=quarter, power=power)
    absent = ends(compute=quarter, availability=away)
    np.testing.assert_allclose(powered[:, 0], absent[:, 0])


def test_gossip_computes_by_the_power_as_well() -> None:
    ring = Gossip.model_validate({"kind": "gossip", "graph": {"kind": "ring"}})
    slow = ends(ring, power={"times": [0], "values": [0.5]})
    np.testing.assert_allclose(slow[:, 0], 2 * ends(ring)[:, 0])


def test_a_file_has_a_table_for_each_client(tmp_path) -> None:
    file = tmp_path / "power.csv"
    file.write_text("client,time,power\n1,0,1\n2,0,1\n2,1.5,0.25\n3,0,0.5\n")
    found = ends(power={"path": str(file)})
    second = found[found[:, 1] == 1][:3, 0]
    np.testing.assert_allclose(second, [1, 3.5, 7.5])  # half of the second job at 1.5
    file.write_text("client,time,power\n1,0,1\n2,1,1\n3,0,1\n")
    with pytest.raises(DataError, match=r"start at 0 .*got 1 \(client 2\)"):
        ends(power={"path": str(file)})
