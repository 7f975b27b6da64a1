"""Worlds of the theory by name."""

import numpy as np
import pytest
from pydantic import ValidationError

from stalesim.simulator.protocols import Asynchronous, Synchronous
from stalesim.simulator.streams import Purpose
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.named import NAMED_WORLDS
from stalesim.simulator.world.world import World
from tests.support import everything, played


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("equal", [1, 1, 1, 1]),
        ("linear", [1, 2, 3, 4]),
        ("square_root", np.sqrt([1, 2, 3, 4])),
        ("one_slow", [1, 1, 1, 100]),
        ("universal", [1, 1, 1, 1]),
    ],
)
def test_fixed_times_are_those_of_the_name(name, wanted) -> None:
    world = World(Clients.model_validate({"number": 4, "world": name}), 4, 1)
    drawn = [world.seconds([world.draw(Purpose.COMPUTE, c)])[0] for c in range(4)]
    np.testing.assert_allclose(drawn, wanted)


@pytest.mark.parametrize("name", NAMED_WORLDS)
def test_a_scenario_that_was_written_is_read_again(name) -> None:
    number = NAMED_WORLDS[name].get("number", 4)
    clients = Clients.model_validate({"number": number, "world": name})
    again = Clients.model_validate(clients.model_dump(mode="json"))
    assert again == clients
    rows, *_ = everything(played(Asynchronous(), again, number, commits=50))
    assert rows.time.size == 50


def test_lomax_jobs_take_ten_seconds_and_more_of_one_on_average() -> None:
    """The mean of Lomax(1.1) is 1 / (1.1 - 1) = 10; the median is 2^(1/1.1) - 1."""
    world = World(Clients.model_validate({"number": 1, "world": "lomax"}), 1, 1)
    times = np.array([world.draw(Purpose.COMPUTE, 0) for _ in range(20_000)])
    assert times.min() > 1
    share = np.mean(times <= 2 ** (1 / 1.1))
    assert abs(share - 0.5) < 4 * 0.5 / 20_000**0.5


def test_a_world_and_a_law_are_refused() -> None:
    tree = {"number": 4, "world": "equal", "compute": {"law": "expon"}}
    with pytest.raises(ValidationError, match="either world or compute"):
        Clients.model_validate(tree)


def test_an_unknown_world_is_refused() -> None:
    with pytest.raises(ValidationError, match="world"):
        Clients.model_validate({"number": 4, "world": "flat"})


def test_shuffled_times_make_the_rounds_of_a_recorded_job_slower() -> None:
    """15.1 % in the trace itself, for rounds of which all ten times are known."""
    named = NAMED_WORLDS["pai_job_4"]
    resampled = {"compute": named["compute"] | {"order": "resample"}, "number": 10}
    took = []
    for each in ({"world": "pai_job_4"}, resampled):
        clients = Clients.model_validate(each)
        rows, *_ = everything(played(Synchronous(), clients, 10, commits=2_182))
        took.append(rows.time[-1])
    assert took[0] / took[1] == pytest.approx(1 - 0.151, abs=0.01)
