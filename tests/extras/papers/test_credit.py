"""Default of credit card clients: csv files, one-hot codes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.extras.papers.data.credit import PAYMENTS, Credit
from stalesim.simulator.problem.data.base import Dataset

BLANKS, DOTS = "default payment next month", "default.payment.next.month"
NAMES = ["ID", "LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE", *PAYMENTS]
NUM = 40


def rows() -> list[list[int]]:
    """Returns rows whose limit is 1000 times the ID, from which all else follows."""
    return [
        [i, 1000 * i, 1 + i % 2, i % 7, i % 4, 20 + i]
        + [i % 3 - 2 + j for j in range(18)]
        + [int(i % 4 == 0)]
        for i in range(1, NUM + 1)
    ]


def table(label: str, upper: bool) -> list[list[Any]]:
    names = [*NAMES, label]
    first = ["", *(f"X{i}" for i in range(1, 24)), "Y"]
    return [first, names, *rows()] if upper else [names, *rows()]


def write_csv(path: Path, label: str = DOTS, upper: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [",".join(map(str, row)) for row in table(label, upper)]
    path.write_text("\n".join(lines) + "\n")
    return path


def check(data: Dataset, name: str) -> None:
    assert (data.name, data.num_classes) == (name, 2)
    assert (data.x_train.shape, data.x_test.shape) == ((32, 33), (8, 33))
    assert data.columns[:18] == PAYMENTS
    assert data.columns[18:22] == ("LIMIT_BAL", "AGE", "SEX_1", "SEX_2")
    assert data.columns[22:29] == tuple(f"EDUCATION_{code}" for code in range(7))
    assert data.columns[29:] == tuple(f"MARRIAGE_{code}" for code in range(4))
    number = (data.x_train[:, 18] / 1000).astype(int)
    np.testing.assert_array_equal(data.y_train, number % 4 == 0)
    np.testing.assert_array_equal(data.x_train[:, 17], number % 3 + 15)
    np.testing.assert_array_equal(data.x_train[:, 19], number + 20)
    for start, codes in ((20, 1 + number % 2 - 1), (22, number % 7), (29, number % 4)):
        width = {20: 2, 22: 7, 29: 4}[start]
        block = data.x_train[:, start : start + width]
        np.testing.assert_array_equal(block, np.eye(width)[codes])


@pytest.mark.parametrize("label", [BLANKS, DOTS, f'"{BLANKS}"'])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize(
    "place",
    ["UCI_Credit_Card.csv", "credit/renamed.csv", "default of credit card clients.csv"],
)
def test_reads_csv(root: Path, label: str, upper: bool, place: str) -> None:
    write_csv(root / place, label, upper)
    check(Credit(scale="raw").make(), "credit (other copy)")
