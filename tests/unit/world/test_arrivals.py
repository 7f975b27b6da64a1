"""Jobs that start at times of their own: open systems."""

import numpy as np
import pytest

from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.buffered import Buffered
from stalesim.simulator.catalogue.protocols.t_synchronous import TSynchronous
from stalesim.simulator.files.timeline import Incident, Incidents, StopReason
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients, OpenArrivals, Power, Selection
from stalesim.simulator.world.laws.base import AnyLaw
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from tests.support import everything, played
from tests.unit.protocols.replay import replay_registers, staleness


def opened(
    compute: AnyLaw, gap: AnyLaw, in_flight: int = 10_000, rate: Power | None = None
) -> Clients:
    """Returns clients whose jobs start by a law of their own."""
    arrivals = OpenArrivals(gap=gap, rate=rate)
    return Clients(
        compute=compute, selection=Selection(in_flight=in_flight, arrivals=arrivals)
    )


def missed(plan: SimulatedTimeline) -> np.ndarray:
    """Returns when starts found no place or no client."""
    parts = [chunk.incidents for chunk in plan.chunks(4096)]
    found = Incidents(*map(np.concatenate, zip(*parts, strict=True)))
    return found.time[found.incident == Incident.MISSED]


def test_starts_do_not_wait_for_ends() -> None:
    clients = opened(Constant(value=2.5), Constant(value=1))
    rows, jobs, _ = everything(played(Asynchronous(), clients, 10, time=6.2))
    assert jobs.read_time[:3].tolist() == [1, 2, 3]
    assert rows.time.tolist() == [3.5, 4.5, 5.5]
    assert staleness(rows) == [0, 1, 2]
    replay_registers(rows)


def test_a_start_without_a_place_is_missed_and_counted() -> None:
    clients = opened(Constant(value=2.5), Constant(value=1), in_flight=2)
    plan = played(Asynchronous(), clients, 10, time=8.5)
    rows, *_ = everything(plan)
    # In flight from 1 to 3.5, 2 to 4.5, 4 to 6.5, 5 to 7.5; 3 and 6 find two.
    assert rows.time.tolist() == [3.5, 4.5, 6.5, 7.5]
    assert missed(plan).tolist() == [3, 6]
    few = played(
        Asynchronous(), opened(Constant(value=2.5), Constant(value=1)), 2, time=8.5
    )
    assert missed(few).tolist() == [3, 6]


def test_an_open_system_in_which_no_job_can_end_ends() -> None:
    clients = opened(Constant(value=1), Constant(value=1), in_flight=2)
    *_, last = played(TSynchronous(t=3), clients, 5, commits=9).chunks(64)
    assert last.stop is StopReason.STALLED
    # Two arrive, and wait for a third: at 3, as later, there is no place for it.
    assert last.incidents.time.tolist() == [3]
    alone = played(TSynchronous(t=3), opened(*[Constant(value=1)] * 2), 2, commits=9)
    *_, last = alone.chunks(64)
    assert last.stop is StopReason.STALLED


def test_staleness_of_poisson_arrivals_is_the_rate_times_a_job() -> None:
    # M/G/infinity: jobs that end during another are Poisson, of rate 1/gap.
    rate, mean = 40.0, 0.6
    law = Scipy.model_validate({"law": "gamma", "a": 2, "scale": mean / 2})
    clients = opened(law, Scipy.model_validate({"law": "expon", "scale": 1 / rate}))
    plan = played(Asynchronous(), clients, 2_000, commits=20_000)
    rows, jobs, _ = everything(plan)
    stale = np.array(staleness(rows)[2_000:], float)
    spread = stale.reshape(-1, 1_000).mean(axis=1)
    error = spread.std(ddof=1) / np.sqrt(spread.size)
    assert abs(stale.mean() - rate * mean) < 4 * error
    # Not what a closed system of as many jobs has, C - 1 of C, without any spread.
    assert spread.std() > 0
    assert not missed(plan).size
    assert np.unique(jobs.client).size > 1_000


def test_buffers_of_flsim_are_as_stale_as_its_published_settings_say() -> None:
    # examples/configs/sent140_fedbuff_config.json: starts at a constant rate of 100,
    # half-normal durations of scale 1, buffers of 10: a job of d s sees 100 d ends.
    law = Scipy.model_validate({"law": "halfnorm", "scale": 1})
    clients = opened(law, Constant(value=0.01))
    _, jobs, _ = everything(played(Buffered(size=10), clients, 3_000, commits=1_000))
    applied = jobs.commit < 1_000
    stale = (jobs.commit - 1 - jobs.read_version)[applied & (jobs.read_time > 5)]
    found = np.quantile(stale, [0.5, 0.9, 0.99])
    np.testing.assert_allclose(found, [6.7, 16.4, 25.8], atol=1)


def test_demand_follows_the_rate_over_time() -> None:
    day = Power(times=(0, 10), values=(3, 1), period=20)
    gap = Scipy.model_validate({"law": "expon", "scale": 0.05})
    clients = opened(Constant(value=0.1), gap, rate=day)
    _, jobs, _ = everything(played(Asynchronous(), clients, 1_000, time=400))
    busy = (jobs.read_time % 20 < 10).sum()
    # 20 periods of 10 s: 60 and 20 starts a second.
    assert abs(busy - 12_000) < 4 * np.sqrt(12_000)
    assert abs(jobs.client.size - busy - 4_000) < 4 * np.sqrt(4_000)


def test_gaps_of_no_time_are_refused() -> None:
    still = opened(Constant(value=1), Constant(value=0))
    with pytest.raises(ScenarioError, match="gap must be > 0 in each draw"):
        everything(played(Asynchronous(), still, 3, time=5))
