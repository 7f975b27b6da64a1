"""Waves: rows whose work depends on none of each other, by the record alone.

What a client computes depends on the version that it has read, and the timeline, known
beforehand, says which. So the work of all rows up to the first one that reads a
register written within the wave may be done at once, and is the same as row by row.
"""

import numpy as np
from jaxtyping import Int

from .timeline import NO_SLOT, NO_WORKER


def ends(
    worker: Int[np.ndarray, "T W"],
    read_slot: Int[np.ndarray, "T W"],
    keep_slot: Int[np.ndarray, " T"],
    *,
    keeps_clients: bool = False,
) -> Int[np.ndarray, " T"]:
    """Returns, for each row, the first row after a wave that begins with it.

    Args:
        worker: Workers of each row, padded with `NO_WORKER`.
        read_slot: Register that each has read, or `NO_SLOT`.
        keep_slot: Register that the version before a row is written to, before the row
            reads; `NO_SLOT` if none is.
        keeps_clients: Whether a job begins with what its client's job before has left;
            then no client is twice in a wave.
    """
    size = keep_slot.size
    rows = np.arange(size)
    written = _latest(keep_slot[:, None], NO_SLOT, read_slot, NO_SLOT, same_row=True)
    end = np.searchsorted(np.maximum.accumulate(written), rows, side="right")
    if keeps_clients and size:
        before = _latest(worker, NO_WORKER, worker, NO_WORKER, same_row=False)
        repeated = np.searchsorted(np.maximum.accumulate(before), rows, side="left")
        # The row itself may repeat a client of an earlier one.
        end = np.minimum(end, np.maximum(repeated, rows + 1))
    return end.astype(np.int32)


def _latest(
    made: Int[np.ndarray, "T A"],
    none_made: int,
    asked: Int[np.ndarray, "T B"],
    none_asked: int,
    *,
    same_row: bool,
) -> Int[np.ndarray, " T"]:
    """Returns the latest row, for each, that made one of the numbers it asks for.

    Args:
        made: Numbers that each row makes, such as registers that it writes.
        none_made: Number that stands for none.
        asked: Numbers that each row asks for.
        none_asked: Number that stands for none.
        same_row: Whether a row may be that row itself.

    Returns:
        Rows; -1 where none before has made one.
    """
    size = len(made)
    row, place = np.nonzero(made != none_made)
    keys = made[row, place].astype(np.int64) * (size + 1) + row
    keys.sort()
    row, place = np.nonzero(asked != none_asked)
    number = asked[row, place].astype(np.int64)
    limit = number * (size + 1) + row
    at = np.searchsorted(keys, limit, side="right" if same_row else "left") - 1
    found = keys[at] if keys.size else np.full(at.size, -1)
    known = (at >= 0) & (found // (size + 1) == number)
    latest = np.full(size, -1, np.int64)
    np.maximum.at(latest, row[known], found[known] % (size + 1))
    return latest
