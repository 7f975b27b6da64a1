"""The page of the study of cancelling: shares that add up, and costs that are found."""

import itertools
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from generators import cancel as page


def rows(seconds: dict[tuple[float, int, bool, float], float]) -> pd.DataFrame:
    """Returns results of one world and noise, of which two seeds are 10 % apart."""
    return pd.DataFrame(
        [
            {"clients": 16, "tail": "exponential", "spread": 1.0, "noise": 4.0}
            | {"unlike": 0.0}
            | {"bound": bound, "batch": m, "cancels": cancels, "waits": False}
            | {"cost": cost, "tuned": s, "s10": s, "s11": 1.1 * s, "log": math.log(s)}
            for (bound, m, cancels, cost), s in seconds.items()
        ]
    )


FOUND = {
    (math.inf, 1, False, 0.0): 8.0,
    (math.inf, 4, False, 0.0): 8.0,
    (1.0, 1, False, 0.0): 4.0,
    (1.0, 4, False, 0.0): 4.0,
    (1.0, 1, True, 0.0): 2.0,
    (1.0, 4, True, 0.0): 1.0,
    (1.0, 1, True, 1.0): 5.0,
    (1.0, 4, True, 1.0): 6.0,
}


def test_rights_share_the_whole_gain() -> None:
    found = page.gains(rows(FOUND)).set_index("cost")
    # Without a bound 8; with one 4; cancelling as well 2; averaging as well 1.
    assert found["all"].round(9).tolist() == [8, 2]
    parts = found[list(page.RIGHTS)].prod(axis=1)
    np.testing.assert_allclose(parts, found["all"])
    # Averaging adds a factor of 2 to both others: a third of it is each one's.
    assert found.loc[0.0, "average"] == pytest.approx(2 ** (1 / 3))
    assert found.loc[1.0, list(page.RIGHTS)].tolist() == pytest.approx([1, 2, 1])


def test_effects_of_one_factor_are_all_of_the_variance() -> None:
    batch = np.broadcast_to(np.arange(3.0), (2, 4, 3))
    found = page.effects(batch)
    assert [round(found[name], 9) for name in page.FACTORS] == [0, 0, 1]


def test_cancelling_stops_paying_between_two_costs() -> None:
    (row,) = page.stops_paying(page.gain_of_cancelling(rows(FOUND))).to_dict("records")
    assert (row["0"], row["1"], row["until"]) == ("4.00", "0.80", "0 to 1")


def test_the_page_has_what_is_there_and_names_the_rest(tmp_path: Path) -> None:
    """Where times have memory cancelling is worth nothing; a network gains as told."""
    folder, worth = tmp_path / page.NAME, {}
    folder.mkdir()
    alone = rows(FOUND).drop(columns="log")
    alike = dict.fromkeys(FOUND, 4.0)
    remembers = rows(alike).drop(columns="log").assign(tail="exponential memory")
    alone.drop(columns="unlike").to_csv(folder / "16-exponential-1.csv")  # an older one
    remembers.to_csv(folder / "16-exponential-memory-1.csv")
    both = pd.concat([alone, alone.assign(unlike=4.0)])
    both.to_csv(folder / "16-exponential-1-unlike.csv")
    text = page.document("", tmp_path)
    for section in ("depend on each other", "Data that differ", "Not run"):
        worth[section] = text.partition(section)[2].partition("\n## ")[0]
    assert worth["depend on each other"].count("| never |") == 1
    assert worth["Data that differ"].count("0 to 1") == 2
    assert "64-exponential-memory-1" in worth["Not run"]
    assert "16-exponential-memory-1" not in worth["Not run"]
    assert page.NETWORKS in worth["Not run"]
    study = tmp_path / page.NETWORKS
    study.mkdir()
    both = "averages and cancels at 0"
    names = ("ASGD", "discards", "cancels at 0", "averages", both)
    took = (">=90.0", "29.0..30.0", "9.0..10.0", "39.0..40.0", "19.0..20.0")
    values = [
        {"variant": f"MLP, Lomax 1.5, {name}", "group": f"MLP, Lomax 1.5, {name}"}
        | {"parameters": "{}", "replicate": each, "stop": "target"}
        | {"time to test_loss 0.3": seconds}
        for (name, seconds), each in itertools.product(
            zip(names, took, strict=True), range(10)
        )
    ]
    pd.DataFrame(values).to_csv(study / "values.csv", index=False)
    (row,) = page.gains_of_networks(page.networks(tmp_path)).to_dict("records")
    assert row["discards over cancels"] == "3.00 [3.00, 3.00]"
    assert row["ASGD over averages and cancels"] == "the first never"


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ((1.5, 1.2, 1.9), "1.50 [1.20, 1.90]"),
        ((1.5, 1.2, math.inf), "1.50 [at least 1.20]"),
        ((1.5, 0.0, 1.9), "1.50 [at most 1.90]"),
        ((math.inf, 1.2, math.inf), "[at least 1.20]"),
        ((0.0, 0.0, math.inf), "[no bound]"),
        ((0.0, 0.0, 0.0), "the second never"),
    ],
)
def test_a_ratio_says_which_of_its_ends_are_known(
    found: tuple[float, float, float], text: str
) -> None:
    assert page.ratio(*found) == text


def test_pairs_that_never_arrived_say_nothing() -> None:
    slow, fast = np.array([4.0, np.inf, 8.0]), np.array([2.0, np.inf, 4.0])
    names = ("ASGD", "discards", "averages")
    own = dict.fromkeys(names, slow) | {"cancels at 0": fast}
    own["averages and cancels at 0"] = fast
    (row,) = page.gains_of_networks({"MLP": own}).to_dict("records")
    assert row["discards over cancels"] == "2.00 [2.00, 2.00]"
