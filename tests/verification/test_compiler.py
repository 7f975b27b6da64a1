"""What LLVM has compiled wrongly is compiled rightly as runs are compiled."""

from itertools import product

import jax
import numpy as np
import pytest

from tests.verification.miscompiled_stores import (
    COLUMNS,
    FUNCTIONS,
    ROWS,
    Function,
    error,
)

SIZES = list(product(ROWS, COLUMNS))
ROUNDINGS = 100
"""Products of three numbers: few are enough."""


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.long  # all in all
@pytest.mark.parametrize(
    ("rows", "columns", "dtype"),
    [(*size, dtype) for size, dtype in product(SIZES, ("float64", "float32"))],
)
def test_rows_with_gaps_land_where_they_belong(
    function: Function, rows: int, columns: int, dtype: str
) -> None:
    with jax.enable_x64(True):
        found = error(function, rows, columns, dtype)
    assert found <= ROUNDINGS * np.finfo(dtype).eps
