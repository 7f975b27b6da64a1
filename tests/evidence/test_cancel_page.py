"""The page of the study of cancelling: factors that multiply, costs that are found."""

import itertools
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evidence.generators import cancel as page


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


def save(results: Path, worlds: dict[str, pd.DataFrame]) -> None:
    """Writes the table of the study from the results of its worlds."""
    file = results / page.TABLE
    file.parent.mkdir()
    frames = [frame.assign(world=world) for world, frame in worlds.items()]
    pd.concat(frames).to_parquet(file)


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


def test_what_rights_add_in_turn_multiplies_to_all() -> None:
    (found,) = page.steps_to_the_best(rows(FOUND)).to_dict("records")
    # ASGD 8; with a bound 4; cancelling as well 2; averaging as well 1.
    assert (found["times"], found["clients"], found["noise"]) == ("exponential", 16, 4)
    turns = ("a bound that discards", "cancelling as well", "averaging as well")
    assert [found[each] for each in turns] == [2, 2, 2]
    assert found["all"] == 8


def test_the_page_begins_with_its_premise(tmp_path: Path) -> None:
    save(tmp_path, {"16-exponential-1": rows(FOUND)})
    first = page.document("", tmp_path).split("\n\n")[1]
    assert "restarts with a new draw" in first.replace("\n", " ")


def test_cancelling_stops_paying_between_two_costs() -> None:
    (row,) = page.stops_paying(page.gain_of_cancelling(rows(FOUND))).to_dict("records")
    assert (row["0"], row["1"], row["until"]) == ("4.00", "0.80", "0 to 1")


def test_the_page_has_what_is_there_and_names_the_rest(tmp_path: Path) -> None:
    """Where times have memory cancelling is worth nothing; a network gains as told."""
    worth = {}
    alone = rows(FOUND).drop(columns="log")
    alike = dict.fromkeys(FOUND, 4.0)
    remembers = rows(alike).drop(columns="log").assign(tail="exponential memory")
    save(
        tmp_path,
        {
            "16-exponential-1": alone.drop(columns="unlike"),  # alike, so without it
            "16-exponential-memory-1": remembers,
            "16-exponential-1-unlike": pd.concat([alone, alone.assign(unlike=4.0)]),
        },
    )
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
