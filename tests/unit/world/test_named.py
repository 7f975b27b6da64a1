"""Worlds of the theory by name."""

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evidence.generators.recorded import tables, throughput
from stalesim.simulator.catalogue.protocols.asynchronous import Asynchronous
from stalesim.simulator.catalogue.protocols.synchronous import Synchronous
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.world import named
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.named import NAMED_WORLDS
from stalesim.simulator.world.streams import Purpose
from stalesim.simulator.world.world import World
from tests.support import everything, played

RECORDS = Path(named.__file__).parent / "recorded"


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


def of_table(name: str) -> pd.DataFrame:
    return pd.read_csv(RECORDS / f"{name}.csv.gz")


@pytest.mark.parametrize(("job", "ranks", "steps"), [("ar", 16, 44), ("st", 8, 32)])
def test_rounds_of_bytedance_wait_for_the_slowest_rank(job, ranks, steps) -> None:
    table = of_table(f"bytedance/{job}")
    seconds = table["time"].to_numpy().reshape(ranks, steps)
    clients = Clients.model_validate({"world": f"bytedance_{job}"})
    rows, *_ = everything(played(Synchronous(), clients, ranks, commits=2 * steps))
    wanted = 2 * seconds.max(axis=0).sum()
    assert rows.time[-1] == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "table", "number"),
    [("flash_phones", "flash/phones", 160), ("steam_gpus", "steam/gpus", 1006)],
)
def test_each_client_is_one_machine_and_the_median_one_takes_a_second(
    name, table, number
) -> None:
    clients = Clients.model_validate({"world": name, "number": number})
    world = World(clients, number, 1)
    drawn = [world.draw(Purpose.COMPUTE, c) for c in [*range(number), 0]]
    seconds = world.seconds(drawn)
    np.testing.assert_allclose(seconds[:-1], of_table(table)["time"])
    assert seconds[-1] == seconds[0]
    assert np.sum(seconds[:-1] < 1) <= number / 2 <= np.sum(seconds[:-1] <= 1) + 1
    more = Clients.model_validate({"world": name, "number": number + 1})
    with pytest.raises(ScenarioError, match=f"none for client {number + 1}"):
        World(more, number + 1, 1)


def test_equal_virtual_machines_differ_by_tenths_of_a_percent() -> None:
    """Quartiles of the 10,410 measured speeds: 20561.105, 20593.15 and 20613.7575."""
    world = World(Clients.model_validate({"world": "azure_vms", "number": 1}), 1, 1)
    times = np.array([world.draw(Purpose.COMPUTE, 0) for _ in range(4000)])
    assert abs(np.mean(times <= 1) - 0.5) < 4 * 0.5 / 4000**0.5
    quartiles = of_table("azure/vms")["time"].quantile([0.25, 0.75])
    wanted = [20593.15 / 20613.7575, 20593.15 / 20561.105]
    np.testing.assert_allclose(quartiles, wanted, rtol=1e-5)


def test_a_download_is_as_fast_as_the_link_is_when_it_begins() -> None:
    clients = Clients.model_validate({"world": "fivegophers"})
    _, jobs, _ = everything(played(Asynchronous(), clients, 6, commits=600))
    factors = of_table("fivegophers/links")["factor"].to_numpy().reshape(6, -1)
    bandwidth = np.array(NAMED_WORLDS["fivegophers"]["download"]["bandwidth"])
    done = ~np.isnan(jobs.begun_time)
    assert done.sum() >= 600
    client, read = jobs.client[done], jobs.read_time[done]
    wanted = 4 * factors[client, (read / 5).astype(int)] / bandwidth[client]
    # A difference of times of 100 s has an error of 1e-14.
    np.testing.assert_allclose(jobs.begun_time[done] - read, wanted, atol=1e-13)


def test_tables_are_made_again_of_the_files_that_they_are_from() -> None:
    folder = Path(os.environ.get("STALESIM_DATA", "")) / "traces"
    if not folder.is_dir():
        pytest.skip("the traces are not here: set STALESIM_DATA to their folder")
    made = {
        name: "\n".join(",".join(map(str, row)) for row in [columns, *rows]) + "\n"
        for name, columns, rows in tables(folder)
    }
    for path in RECORDS.glob("*/*.csv.gz"):
        name = f"{path.parent.name}/{path.name.removesuffix('.csv.gz')}"
        assert gzip.decompress(path.read_bytes()).decode() == made.pop(name)
    assert not made
    # What the sources say of themselves, computed otherwise.
    frame = pd.read_parquet(folder / "bytedance_stragglers/trace-ST.parquet")
    compute = frame[frame["optype"].astype(str).str.endswith("-compute")]
    assert of_table("bytedance/st")["time"].sum() == pytest.approx(
        compute["duration"].sum(), rel=1e-4
    )
    speeds = [
        mine.mean() * 1e6 / 8 for mine in throughput(folder / "5gophers/throughput.csv")
    ]
    assert NAMED_WORLDS["fivegophers"]["download"]["bandwidth"] == pytest.approx(
        speeds, rel=1e-5
    )
