"""Tables 1 and 2 of FedBCD: ratios to the FedSGD whose eta_0 was chosen alike."""

import math

import pandas as pd

from evidence.generators.fedbcd import ratios

ROUNDS = {"fedsgd": 60.0, "p-5": 12.0, "fedsgd-tuned": 8.0, "p-5-tuned": 4.0}


def _table(rounds: dict[str, float]) -> pd.DataFrame:
    rows = [(at, group, at * n) for at in (1.0, 2.0) for group, n in rounds.items()]
    return pd.DataFrame(rows, columns=["target", "group", "rounds"])


def test_groups_are_compared_with_their_own_reading() -> None:
    found = ratios(_table(ROUNDS | {"p-5-own": 16.0}), "fedsgd")
    assert found.tolist() == [1, 5, 1, 2, 0.5] * 2


def test_without_a_tuned_one_all_are_compared_with_the_only_one() -> None:
    found = ratios(_table({"fedsgd": 60.0, "p-5-own": 12.0, "p-9": math.inf}), "fedsgd")
    assert found.tolist()[:2] == [1, 5]
    assert math.isnan(found[2])
