"""The study of stopped jobs: its times, its two sides, and what it chooses.

Its event loop and moments are those of `cancel`, which are held against the simulator,
fates included, in test_cancel.py.
"""

import math

import numpy as np
import pandas as pd
import pytest

from evidence.generators import stops as page
from evidence.studies import cancel, stops
from evidence.studies.cancel import Method
from evidence.studies.stops import SharedSpeed, StopsWorld


def test_work_at_a_shared_speed_is_its_integral() -> None:
    world = StopsWorld(2, "common under way")
    times = world.times(3)
    assert isinstance(times, SharedSpeed)
    r = np.random.default_rng(1)
    begun, work = r.uniform(0, 50, 200), r.exponential(2, 200)
    ends = [times.ends(*each) for each in zip(begun, work, strict=True)]
    speed = np.array(times._speed)
    for start, end, wanted in zip(begun, ends, work, strict=True):
        fine = np.linspace(start, end, 40_001)
        middle = (fine[1:] + fine[:-1]) / 2
        done = speed[middle.astype(int)].sum() * (fine[1] - fine[0])
        assert done == pytest.approx(wanted, rel=1e-3)
        assert times.worked(start, end) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("law", [*stops.INDEPENDENT, *stops.DEPENDENT])
def test_jobs_take_a_second_on_average(law: str) -> None:
    """Of 8 clients, one after the other, weighted by their means; errors are shown.

    With a memory of ten jobs 4,000 jobs count as some 200, of a standard deviation of
    1.3: 0.1; a third of the mean for Lomax, whose variance is infinite.
    """
    world = StopsWorld(8, law)
    took = []
    for seed in range(4):
        times, now = world.times(seed), 0.0
        for job in range(4000):
            end = times.ends(now, times.seconds(3, job, now))
            took.append(end - now)
            now = end
    loose = 0.33 if law == "Lomax 1.5" else 0.2
    assert np.mean(took) / world.means[3] == pytest.approx(1, abs=loose)
    if law not in stops.INDEPENDENT[:2]:
        assert np.log(took).std() == pytest.approx(1, abs=0.15)


def test_memory_in_time_is_of_moments_and_not_of_jobs() -> None:
    world = StopsWorld(8, "memory in time")
    times, mean = world.times(5), world.means[2]
    soon = [times.seconds(2, job, 7 * mean) for job in range(3)]
    assert soon == [soon[0]] * 3
    logs = np.log([times.seconds(2, 0, mean * at) for at in range(20_000)])
    assert np.corrcoef(logs[1:], logs[:-1])[0, 1] == pytest.approx(0.9, abs=0.02)


def test_both_sides_have_all_of_the_family() -> None:
    every = list(stops.methods(8))
    assert len({*every}) == len(every)
    for side in stops.SIDES:
        mine = [method for method in every if stops.side_of(method) == side]
        assert {m.batch for m in mine} == {1, 2, 4, 8, 16, 32}
        found = {(m.cost, m.fate) for m in mine if m.cancels}
        assert found == {(c, f) for c in cancel.COSTS for f in stops.FATES}
    assert all(m.bound == 1 for m in every if m.waits)


def test_the_best_is_of_its_side_and_of_its_fate(monkeypatch) -> None:
    """Times are made so that each cell has one best, and steps have a bowl."""
    bowl = np.abs(np.arange(cancel.STEPS.size) - 20) / 100

    def log_of(method: Method) -> np.ndarray:
        cheap = -0.5 if method.cancels and method.fate == "redrawn" else 0.2
        free = math.inf if method.bound is None else method.bound
        own = cheap + method.cost - 0.01 / method.batch - 0.001 / free
        return np.tile(own + bowl, (len(stops.CASES), 1))

    def measured(world, seed, of) -> dict[Method, np.ndarray]:
        return {method: np.exp(log_of(method) + 0.001 * seed) for method in of}

    monkeypatch.setattr(stops, "measure", measured)
    found = stops.table(StopsWorld(8, "exponential"), tune=(0, 2), judge=(10,))
    assert len(found) == 2 * 5 * 3 * len(stops.CASES)
    own = (found["fate"] == "redrawn") & (found["cost"] < 0.7)
    assert (found["cancels"] == own).all()
    assert (found["batch"] == 1).all()
    assert (found["step"] == cancel.STEPS[20]).all()
    fresh = found["bound"] == 1
    assert (fresh == (found["side"] == "synchronous")).all()
    np.testing.assert_allclose(np.log(found["s10"] / found["tuned"]), 0.009)
    bowl = np.arange(cancel.STEPS.size) / 100
    with pytest.raises(ValueError, match=r"is a border: 4\.6"):
        stops.table(StopsWorld(8, "exponential"), tune=(0,), judge=(10,))


def test_crossings_are_those_of_the_intervals(tmp_path) -> None:
    """Twenty seeds whose ratios are known: 0.5 where a stop is free, then 1, then 2."""
    rows = []
    for cost, ratio in ((0.0, 0.5), (0.1, 1.0), (1.0, 2.0)):
        for side, seconds in zip(stops.SIDES, (1.0, ratio), strict=True):
            own = {"clients": 8, "law": "exponential", "side": side, "cost": cost}
            own |= {"fate": "kept", "noise": 4.0, "condition": 10, "bound": math.nan}
            own |= {"batch": 1, "cancels": False, "waits": False}
            spread = np.linspace(0.99, 1.01, 20) if side == stops.SIDES[1] else 1
            rows.append(
                own | {f"s{i}": v for i, v in enumerate(seconds * spread * np.ones(20))}
            )
    (tmp_path / "stops").mkdir()
    pd.DataFrame(rows).to_csv(tmp_path / page.TABLE, index=False)
    [found] = page.crossings(page.ratios(tmp_path)).to_dict("records")
    assert [found[key] for key in ("0", "0.1", "1")] == ["0.50", "1.00", "2.00"]
    assert (found["behind up to"], found["ahead from"]) == ("0", "1")
    text = page.document("", tmp_path)
    assert "1 of 21 worlds" in text
    left = text.split("## Not played")[1].strip().rstrip(".").split(", ")
    assert len(left) == 20
    assert "8-exponential" not in left


def test_a_step_is_there_when_it_stays() -> None:
    """Against a loop, over blocks of commits whose targets are met at random."""
    r = np.random.default_rng(5)
    there = r.random((40, 6)) < np.linspace(0.2, 1, 6)
    there[:, 4] = np.arange(40) >= 17
    when = np.cumsum(r.exponential(size=40))
    first = stays = np.full(6, np.inf)
    for block in (slice(0, 8), slice(8, 16), slice(16, 40)):
        first = cancel.passed(first, there[block], when[block])
        stays = cancel.staying(stays, there[block], when[block])
    for step in range(6):
        hits = np.flatnonzero(there[:, step])
        assert first[step] == when[hits[0]]
        above = np.flatnonzero(~there[:, step])
        after = above[-1] + 1 if above.size else 0
        assert stays[step] == (when[after] if after < 40 else np.inf)
    assert stays[4] == when[17]
    assert stays[5] == when[0]
