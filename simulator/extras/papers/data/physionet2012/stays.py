"""The stays in an intensive care unit: measurements of each, and its outcome."""

import csv
import io
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int8, Int16

from .....files.reading.archive import Arrays
from .....files.reading.table import FLOAT32_MAX
from .....parts.errors import DataError
from ..clinical import HOURS

VARIABLES = (
    *("Albumin", "ALP", "ALT", "AST", "Bilirubin", "BUN", "Cholesterol"),
    *("Creatinine", "DiasABP", "FiO2", "GCS", "Glucose", "HCO3", "HCT", "HR", "K"),
    *("Lactate", "Mg", "MAP", "MechVent", "Na", "NIDiasABP", "NIMAP", "NISysABP"),
    *("PaCO2", "PaO2", "pH", "Platelets", "RespRate", "SaO2", "SysABP", "Temp"),
    *("TroponinI", "TroponinT", "Urine", "WBC", "Weight"),
)
"""The 37 variables that are measured, in the order of the challenge's page."""
DESCRIPTORS = ("Age", "Gender", "Height", "ICUType")
"""Values written once, at the beginning; the weight is measured again later."""
IDENTITY = "RecordID"
HEADER = "Time,Parameter,Value"
OUTCOME, DIED = "RecordID", "In-hospital_death"
UNKNOWN = -1.0
"""The code of an unknown value."""
MINUTES = {
    f"{minute // 60:02d}:{minute % 60:02d}": minute for minute in range(60 * HOURS + 1)
}
"""Minutes since admission of every time that a file may hold."""
NUMBERS = {name: number for number, name in enumerate((*VARIABLES, *DESCRIPTORS))}
STAY = re.compile(r"(?:^|/)set-([ab])/(\d+)\.txt$")


def parse_outcomes(path: Path, content: bytes) -> dict[int, int]:
    """Returns whether the patient of each stay died in hospital, by its number.

    Raises:
        DataError: It has no such columns, or other values.
    """
    text = content.decode("utf-8-sig", "replace")
    found: dict[int, int] = {}
    for line, row in enumerate(csv.DictReader(io.StringIO(text)), 2):
        record, died = row.get(OUTCOME) or "", row.get(DIED) or ""
        if not record.isdigit() or died not in ("0", "1"):
            raise DataError(
                f"the outcomes in {path} must have {OUTCOME} and {DIED} (0 or 1), got "
                f"{record!r} and {died!r} in line {line}; download them again"
            )
        found[int(record)] = int(died)
    if not found:
        raise DataError(
            f"the outcomes in {path} must have a row for each stay, got none; "
            "download them again"
        )
    return found


def parse_stays(
    path: Path, contents: Iterable[tuple[int, bytes]], died: dict[int, int]
) -> Arrays:
    """Returns stays with their outcomes, in the order of their numbers.

    Returns:
        Of each of the `M` measurements, stay by stay, `minute` since admission,
        `variable`, its number in `VARIABLES`, and `value` in the challenge's units. Of
        each of the `N` stays `ends`, the measurements up to its end, `descriptors`, the
        values of `DESCRIPTORS`, NaN where unknown, and `died`, 1 for a death in
        hospital.

    Raises:
        DataError: A stay is missing or has no outcome, or its file is damaged.
    """
    files = dict(sorted(contents))
    lone = sorted({*files} ^ {*died})
    if lone:
        what = "an outcome" if lone[0] in files else "a file"
        raise DataError(
            f"{path} must have a file and an outcome for each stay, got stay {lone[0]} "
            f"without {what} ({len(files)} files, {len(died)} outcomes); download the "
            "set again"
        )
    minutes, variables, values, ends = [], [], [], []
    descriptors = np.full((len(files), len(DESCRIPTORS)), np.nan, np.float32)
    for row, (record, content) in enumerate(files.items()):
        minute, number, value = _parsed(path, record, content)
        once = number >= len(VARIABLES)
        descriptors[row, number[once] - len(VARIABLES)] = value[once]
        minutes.append(minute[~once])
        variables.append(number[~once])
        values.append(value[~once])
        ends.append(np.count_nonzero(~once))
    return {
        "minute": np.concatenate(minutes),
        "variable": np.concatenate(variables),
        "value": np.concatenate(values),
        "ends": np.cumsum(ends, dtype=np.int32),
        "descriptors": descriptors,
        "died": np.array([died[record] for record in files], np.int8),
    }


def _parsed(
    path: Path, record: int, content: bytes
) -> tuple[Int16[np.ndarray, " m"], Int8[np.ndarray, " m"], Float32[np.ndarray, " m"]]:
    """Returns minutes, numbers of variables and values of a stay, known ones only."""
    header, *lines = content.decode("utf-8", "replace").split()
    wrong = header if header != HEADER else "" if lines else "nothing more"
    minutes, numbers, values = [], [], []
    for line in lines:
        time, _, rest = line.partition(",")
        name, _, text = rest.partition(",")
        try:
            minute, value = MINUTES[time], float(text)
            number = None if name == IDENTITY else NUMBERS[name]
        except (LookupError, ValueError):
            wrong = wrong or line
            break
        if number is not None and value != UNKNOWN and abs(value) <= FLOAT32_MAX:
            minutes.append(minute)
            numbers.append(number)
            values.append(value)
    if wrong:
        raise DataError(
            f"stay {record} in {path} must have the header {HEADER} and rows of a time "
            f"up to {HOURS}:00, a known parameter and a number, got {wrong[:60]!r}; "
            "download the set again"
        )
    return (
        np.array(minutes, np.int16),
        np.array(numbers, np.int8),
        np.array(values, np.float32),
    )
