"""What clients are called in tables, figures and trace events."""

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis import clients


@pytest.mark.parametrize(
    ("label", "group", "name", "title"),
    [
        (np.nan, np.nan, "4", "client 4"),
        (np.nan, "fast", "4 (fast)", "client 4 (fast)"),
        ("phone-a", np.nan, "phone-a", "phone-a"),
        ("3a-phone", np.nan, "3a-phone", "3a-phone"),
        ("17", np.nan, "4 (log: 17)", "client 4 (log: 17)"),
        ("1.5", np.nan, "4 (log: 1.5)", "client 4 (log: 1.5)"),
        ("10.0.0.7", np.nan, "4 (log: 10.0.0.7)", "client 4 (log: 10.0.0.7)"),
    ],
)
def test_a_client_is_never_taken_for_another_ones_number(
    label: object, group: object, name: str, title: str
) -> None:
    columns = {clients.GROUP: [group], clients.LABEL: [label]}
    known = pd.DataFrame(columns, index=pd.Index([4]), dtype=object)
    assert clients.names(known, [4]) == [name]
    assert clients.titles(known, [4]) == [title]
    assert clients.are_named(known) == (name != "4")
    assert clients.names(known, [5]) == ["5"]  # of whom nothing is known
