"""How clients are numbered: from 0 in arrays, from 1 wherever a user meets them.

Scenarios, logs, tables, figures and messages count clients, parties and workers from 1.
Columns of `COLUMNS` that are `numbered` are turned here, on their way into a file and
back; a missing client (null in a file) is `NO_CLIENT` in arrays.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

if TYPE_CHECKING:
    import pyarrow as pa

NO_CLIENT = 2**31 - 1
"""The missing client of arrays; `timeline.NO_WORKER` and `timeline.SERVER`."""


def outward(numbers: Int[np.ndarray, " n"]) -> "pa.Array":
    """Returns a column of a file from numbers that count from 0."""
    import pyarrow as pa

    numbers = np.asarray(numbers)
    missing = numbers == NO_CLIENT
    counted = np.where(missing, 0, numbers) + 1
    mask = missing if missing.any() else None
    return pa.array(counted.astype(np.int32), pa.int32(), mask=mask)


def inward(column: Any) -> Int[np.ndarray, " n"]:
    """Returns numbers that count from 0 from a column of a file."""
    import pyarrow.compute as pc

    counted = pc.fill_null(column, 0).to_numpy()
    return np.where(counted == 0, NO_CLIENT, counted - 1).astype(np.int32)
