"""The 17 variables of a stay: their cells, 714 statistics, or 48 hours."""

import re

import numpy as np
from jaxtyping import Float32, Float64

from .. import clinical
from ..clinical import HOURS

VARIABLES = (
    "Capillary refill rate",
    "Diastolic blood pressure",
    "Fraction inspired oxygen",
    "Glascow coma scale eye opening",
    "Glascow coma scale motor response",
    "Glascow coma scale total",
    "Glascow coma scale verbal response",
    "Glucose",
    "Heart Rate",
    "Height",
    "Mean blood pressure",
    "Oxygen saturation",
    "Respiratory rate",
    "Systolic blood pressure",
    "Temperature",
    "Weight",
    "pH",
)
"""Variables in the spelling and order of the benchmark."""
CATEGORICAL = frozenset(v for v in VARIABLES if "coma" in v or "refill" in v)
"""Variables with texts in their cells, whose leading number counts."""
TEXTS = {
    "no response-ett": 1.0,
    "no response": 1.0,
    "incomprehensible sounds": 2.0,
    "inappropriate words": 3.0,
    "confused": 4.0,
    "oriented": 5.0,
    "none": 0.0,
    "to pain": 2.0,
    "to speech": 3.0,
    "spontaneously": 4.0,
    "abnormal extension": 2.0,
    "abnormal flexion": 3.0,
    "flex-withdraws": 4.0,
    "localizes pain": 5.0,
    "obeys commands": 6.0,
}
"""Texts without a leading number, in lower case: the benchmark's numbers."""
LEADING = re.compile(r"(\d+(?:\.\d+)?)(?:\s|$)")
NAMES = tuple(variable.lower().replace(" ", "_") for variable in VARIABLES)
STATISTICS = clinical.columns(NAMES)
"""Columns of the statistics: variable by variable, 42 each."""
HOURLY = tuple(
    f"{name}_hour_{hour}"
    for hour in range(HOURS)
    for name in (*NAMES, *(f"{name}_measured" for name in NAMES))
)
"""Columns hour by hour: the means of all variables, then their masks."""
VIEWS = (*NAMES, *NAMES) * HOURS
"""View of each of these: its variable."""


def category(cell: str) -> float:
    """Returns the number of a categorical cell, NaN for an unknown text.

    It is the leading number, as in `4 Spontaneously`, or else from `TEXTS`.

    Source: Harutyunyan et al., channel_info.json of the benchmark.
    """
    match = LEADING.match(cell)
    return float(match[1]) if match else TEXTS.get(cell.lower(), float("nan"))


def statistics(
    hours: Float64[np.ndarray, " T"], values: Float64[np.ndarray, "T 17"]
) -> Float64[np.ndarray, " P"]:
    """Returns the 714 statistics of one stay, NaN for a variable never measured.

    Args:
        hours: Time of each row since admission, hours.
        values: Measurements of the 17 variables, NaN for none.

    Source: as `clinical.statistics`.
    """
    variable, row = np.nonzero(~np.isnan(values.T))
    given = hours[row], values[row, variable], variable
    found = clinical.statistics(*given, len(VARIABLES))
    # Where nothing was measured the count is unknown, too.
    found[found[..., -1] == 0] = np.nan
    return found.ravel()


def hourly(
    hours: Float64[np.ndarray, " T"], values: Float64[np.ndarray, "T 17"]
) -> Float32[np.ndarray, "48 17"]:
    """Returns the mean of each variable in each hour of a stay, NaN where none is.

    Hour h holds the times from h up to h + 1; 48 h itself belongs to the last one.
    """
    row, variable = np.nonzero(~np.isnan(values))
    hour = np.clip(hours[row].astype(int), 0, HOURS - 1)
    cell = hour * len(VARIABLES) + variable
    means = clinical.means(values[row, variable], cell, HOURS * len(VARIABLES))
    return means.reshape(HOURS, -1)


def sequences(
    means: Float32[np.ndarray, "N 48 17"], usual: Float64[np.ndarray, " 17"]
) -> Float32[np.ndarray, "N P"]:
    """Returns rows of hours: means, carried forward where there are none, and masks.

    Args:
        means: Hourly means, NaN where there are none.
        usual: Value of each variable before its first measurement.
    """
    both = clinical.filled(means, usual), clinical.measured(means)
    return np.concatenate(both, axis=2, dtype=np.float32).reshape(len(means), -1)
