"""A world in which everything takes so many times as long does the same."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stalesim.simulator.catalogue.protocols.bounded import Bounded
from stalesim.simulator.catalogue.protocols.turns import Centralised, Cyclic
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.laws.distributions import Constant, Scipy
from stalesim.simulator.world.workload import Workload
from tests.property.stretching import stretched
from tests.property.test_worlds import SERVED, worlds
from tests.property.whole import REGISTERS, assert_alike, whole
from tests.support import played

# Multiplying by a power of two rounds nothing, and commutes with every sum, difference,
# maximum and remainder of floats; so nothing may differ, not even in the last digit.
FACTORS = st.sampled_from([1 / 32, 1 / 2, 4.0, 64.0])


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)
@given(worlds(*SERVED, "gossip"), FACTORS)
def test_times_scale_and_nothing_else_changes(
    plan: SimulatedTimeline, factor: float
) -> None:
    # A stretched world, whose clients join at a multiple of 0, may have another player.
    assert_alike(whole(plan), whole(stretched(plan, factor)), factor, but=REGISTERS)


@pytest.mark.parametrize("factor", [1 / 2, 64.0])
@pytest.mark.parametrize(
    "protocol",
    [
        Bounded(staleness_bound=3),
        Cyclic(step=Scipy(law="expon")),
        Cyclic(step=Constant(value="1/3")),
        Centralised(step=Scipy(law="poisson", parameters={"mu": 3}, scale=0.1)),
    ],
    ids=lambda protocol: protocol.kind,
)
def test_times_of_other_protocols_scale(protocol, factor: float) -> None:
    clients = Clients(compute=Scipy(law="expon", scale="m"), compute_per="step")
    alone = protocol.kind == "centralised"
    # An algorithm's overhead is a time as well.
    traffic = Workload(4, 4, 3, steps=2, samples=6, overhead_s=0.25)
    who, number = (None, 1) if alone else (clients, 3)
    plan = played(protocol, who, number, 4, traffic, time=50)
    once = whole(plan)
    assert once.rows.time.size > 20
    assert_alike(once, whole(stretched(plan, factor)), factor)
    if protocol.kind == "bounded":  # which the comparison would notice
        free = replace(plan, workload=replace(traffic, overhead_s=0))
        assert whole(free).rows.time.size > once.rows.time.size
