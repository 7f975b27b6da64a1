"""Verdicts on the claims of a study: whether what a source says holds here.

`measured` takes from the study the quantities that its claims need; they are all that
is kept to judge them again. A module for each kind of claim (`faster`, `close`, ...)
weighs the evidence for and against it, in the terms of `verdict`; `speed`,
`final_values` and `sweeps` are shared by several. `sequential` and `multiplicity`
correct p-values for several looks and many claims; `findings` decides.
"""

import pandas as pd

from ..frames import Study
from .final_values import difference, of_group
from .findings import (
    Finding,
    ReplicatePlan,
    evaluate,
    judge,
    undecidable,
)
from .measured import Measured
from .verdict import (
    FAILS,
    HOLDS,
    OPEN,
    UNDECIDABLE,
    UNDECIDED,
    Evidence,
    Judged,
    judged,
    near,
    side,
)

__all__ = [
    "FAILS",
    "HOLDS",
    "OPEN",
    "UNDECIDABLE",
    "UNDECIDED",
    "Evidence",
    "Finding",
    "Judged",
    "Measured",
    "ReplicatePlan",
    "all_decided",
    "counts",
    "difference",
    "evaluate",
    "in_words",
    "judge",
    "judged",
    "near",
    "of_group",
    "side",
    "undecidable",
]


def all_decided(study: Study) -> bool:
    """Says whether every claim of a study holds or does not hold."""
    return not evaluate(study)["verdict"].isin(UNDECIDED).any()


def counts(found: pd.DataFrame) -> pd.DataFrame:
    """Returns how many claims have each verdict, a row per origin."""
    table = pd.crosstab(found["origin"], found["verdict"])
    verdicts = [HOLDS, FAILS, OPEN, *({UNDECIDABLE} & {*table})]
    return table.reindex(columns=verdicts, fill_value=0).loc[
        [*dict.fromkeys(found["origin"])]
    ]


def in_words(found: pd.DataFrame) -> str:
    """Returns how many claims hold, do not hold and are undecided, origin by origin."""
    table = counts(found)
    parts = []
    for origin, numbers in table.iterrows():
        said = ", ".join(f"{word} {n}" for word, n in numbers.items())
        parts.append(f"{origin}: {said}" if len(table) > 1 else said)
    return "; ".join(parts)
