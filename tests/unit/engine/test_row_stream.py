"""What feeds the engine with rows."""

import numpy as np

from stalesim.simulator.engine.row_stream import nothing


def test_nothing_has_the_types_of_something() -> None:
    rows, jobs = nothing(3)
    assert rows.worker.shape == (0, 3)
    for part in (rows, jobs):
        for name in part._fields:
            column = getattr(part, name)
            assert len(column) == 0
            is_time = name == "time" or name.endswith("_time")
            assert np.issubdtype(column.dtype, np.floating) == is_time, name
