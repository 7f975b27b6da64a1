"""Processor hours: what is asked of a study, and in which order."""

import math

import pandas as pd
import pytest

from evidence.generators import hours


def _study(name: str, needed: list[float], replicates: int = 3) -> hours.Studied:
    claims = pd.DataFrame({"needed": needed}).assign(
        origin="paper", says="a", open=True
    )
    about = {"replicates": replicates, "dataset": "mnist5k"}
    return hours.Studied(name, "A-1", about, False, claims, 8, False)


def test_the_most_claims_for_an_hour_come_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eight replicates decide two claims in four hours; twenty would decide a third."""
    studies = [
        _study("unknown", [6]),
        _study("dear", [8, 8, 20, math.nan]),
        _study("cheap", [6]),
        _study("decided by none", [math.nan]),
    ]
    costs = {
        "dear": [hours.Estimated(60, "revised"), hours.Estimated(30, "")],
        "cheap": [hours.Estimated(10, "")],
    }
    monkeypatch.setattr(hours, "studies", lambda: studies)
    monkeypatch.setattr(hours, "costs", lambda: costs)
    found = hours.offers()[["replicates", "spent", "to", "claims", "hours"]]
    assert [*found.fillna(-1).itertuples(index=False, name=None)] == [
        (3, "about 0.50", 6, 1, 1.0),
        (3, "about 1.50", 8, 2, 4.0),
        (3, "not recorded", 6, 1, -1),
    ]
    lacks = hours.lacking()
    assert "| 3 of 8 | mnist5k for mnist | not kept |  | 480 | revised |" in lacks
    assert "| 3 of 8 | mnist5k for mnist | not kept |  | no estimate |  |" in lacks


def test_recorded_seconds_are_taken_before_an_estimate() -> None:
    one = _study("a", [6])
    one.about["elapsed_s"] = 5400
    assert hours.spent(one) == ("1.50", 1.5)


def test_trials_count_once_and_their_lack_is_said() -> None:
    one = _study("a", [6])._replace(compares=True)
    one.about.update(elapsed_s=5400)
    assert one.search_unknown
    one.about.update(tuning_s=3600)
    assert hours.spent(one) == ("2.50", 2.5)
    assert hours.hours_of(one, hours.of_file(one), 6) == 4
    assert not one.search_unknown


def test_a_gpu_is_no_core(monkeypatch: pytest.MonkeyPatch) -> None:
    one = _study("a", [6])
    one.about.update(elapsed_s=1800, environment={"backend": "gpu"})
    costs = {"a": [hours.Estimated(40, "")]}
    monkeypatch.setattr(hours, "costs", lambda: costs)
    assert hours.spent(one) == ("0.50 of a GPU", 0.0)
    assert hours.of_file(one).minutes == 40


def test_replicates_that_are_there_are_not_offered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its power says eight, but ten have left the claim undecided."""
    kept = _study("a", [8, 20], replicates=10)._replace(kept=True)
    monkeypatch.setattr(hours, "studies", lambda: [kept])
    monkeypatch.setattr(hours, "costs", dict)
    assert hours.offers()[["to", "claims"]].to_numpy().tolist() == [[20, 1]]
