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

ROUNDINGS = 100
"""Products of three numbers: few are enough."""


@pytest.mark.long  # all in all
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_rows_with_gaps_land_where_they_belong(function: Function, dtype: str) -> None:
    with jax.enable_x64(True):
        for rows, columns in product(ROWS, COLUMNS):
            found = error(function, rows, columns, dtype)
            assert found <= ROUNDINGS * np.finfo(dtype).eps, (rows, columns)
