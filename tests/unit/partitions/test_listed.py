"""`kind: listed`: a division that was published as a file."""

import json
from pathlib import Path

import numpy as np
import pytest

from stalesim.simulator.catalogue.partitions.listed import ListedRows
from stalesim.simulator.parts.errors import DataError, ScenarioError
from stalesim.simulator.problem.data.base import Dataset

X = np.zeros((6, 2), np.float32)
DATA = Dataset("six", X, np.arange(6) % 2, X[:2], np.arange(2), 2, ("a", "b"))
GIVEN = [[5, 0], [1], [4, 3, 2]]


def made(folder: Path, given: object, clients: int = 3) -> list[list[int]]:
    (path := folder / "map.json").write_text(json.dumps(given))
    shares = ListedRows(clients=clients, path=str(path)).make(DATA, seed=1)
    return [rows.tolist() for rows in shares]


def test_rows_are_those_of_the_file(tmp_path: Path) -> None:
    wanted = [[0, 5], [1], [2, 3, 4]]
    assert made(tmp_path, GIVEN) == wanted
    assert made(tmp_path, {"7": GIVEN[0], "x": GIVEN[1], "0": GIVEN[2]}) == wanted


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([[0, 5], [1], [4, 3]], "each of the 6 training rows of six once"),
        ([[0, 5], [1], [4, 3, 3]], "each of the 6 training rows of six once"),
        ([[1, 6], [2], [5, 4, 3]], "numbers from 1 to 6"),
        ([[0, 5], [1, 2, 3, 4], []], "a list of row numbers for each client"),
        ([[0, 5], [1.5], [4, 3, 2]], "a list of row numbers for each client"),
        ([[0, 5], ["1"], [4, 3, 2]], "a list of row numbers for each client"),
        ([[0, 5], [True], [4, 3, 2]], "a list of row numbers for each client"),
        ([[0, [5]], [1], [4, 3, 2]], "correct it"),
        (7, "correct it"),
    ],
)
def test_files_that_are_no_division_are_refused(
    tmp_path: Path, given: object, says: str
) -> None:
    with pytest.raises(DataError, match=says):
        made(tmp_path, given)


def test_another_number_of_clients_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="clients must be 3"):
        made(tmp_path, GIVEN, clients=4)
