"""Waves: which rows depend on none of each other, by the record."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stalesim.simulator.engine import row_waves
from stalesim.simulator.files.timeline import NO_SLOT, NO_WORKER


def ends_one_by_one(
    worker: np.ndarray, read: np.ndarray, keep: np.ndarray, keeps_clients: bool
) -> list[int]:
    """Returns the ends of waves as their definition says, row by row."""
    found = []
    for begin in range(len(keep)):
        written, seen, row = set(), set(worker[begin].tolist()), begin + 1
        while row < len(keep):
            written |= {int(keep[row])}
            mine = set(worker[row].tolist()) - {NO_WORKER}
            if written & (set(read[row].tolist()) - {NO_SLOT}):
                break
            if keeps_clients and seen & mine:
                break
            seen |= mine
            row += 1
        found.append(row)
    return found


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.data())
def test_ends_are_as_the_definition_says(data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 12))
    width = data.draw(st.integers(1, 3))

    def numbers(most: int, none: int, *shape: int) -> np.ndarray:
        size = int(np.prod(shape))
        one = st.one_of(st.integers(0, most), st.just(none))
        drawn = data.draw(st.lists(one, min_size=size, max_size=size))
        return np.array(drawn, np.int32).reshape(shape)

    worker = numbers(4, NO_WORKER, rows, width)
    read = numbers(3, NO_SLOT, rows, width)
    keep = numbers(3, NO_SLOT, rows)
    for keeps_clients in (False, True):
        found = row_waves.ends(worker, read, keep, keeps_clients=keeps_clients)
        expected = ends_one_by_one(worker, read, keep, keeps_clients)
        assert found.tolist() == expected


def test_a_client_that_is_padding_does_not_end_a_wave() -> None:
    nobody = np.full((4, 2), NO_WORKER, np.int32)
    nothing = np.full((4, 2), NO_SLOT, np.int32)
    ends = row_waves.ends(nobody, nothing, nothing[:, 0], keeps_clients=True)
    assert ends.tolist() == [4, 4, 4, 4]
