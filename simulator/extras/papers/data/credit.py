"""Default of credit card clients, profile one-hot, from the file as csv."""

import re
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from ....files.reading import files
from ....files.reading.columns import TextColumns
from ....files.reading.published import Published, PublishedFile
from ....parts.errors import DataError
from ....problem.data.base import Dataset
from ....problem.data.parts import Data, FileData, FileSet, Scale
from ....problem.data.split import divided

CSV = "UCI_Credit_Card.csv"
NAME = re.compile(r"default.of.credit.card.clients|UCI_Credit_Card", re.IGNORECASE)
FOLDERS = (
    "credit",
    "creditdefault",
    "defaultcredit",
    "defaultofcreditcardclients",
    "ucicreditcard",
)
"""Plain names of folders in which a file may have any name."""
HEAD = 4_096
"""Bytes that hold both header rows."""
LABEL = "defaultpaymentnextmonth"
"""Plain name of the label, which has blanks at UCI and dots elsewhere."""
PAYMENTS = (
    *("PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6"),
    *(f"BILL_AMT{month}" for month in range(1, 7)),
    *(f"PAY_AMT{month}" for month in range(1, 7)),
)
"""Columns of payments in the order of the file, which has no PAY_1."""
PROFILE = ("LIMIT_BAL", "AGE")
CODES = {"SEX": (1, 2), "EDUCATION": tuple(range(7)), "MARRIAGE": tuple(range(4))}
"""All codes in the file; UCI does not document 0, 5 and 6."""
PUBLISHED = Published(
    origin="UCI 350, Default of Credit Card Clients (Yeh and Lien, 2009)",
    licence="CC BY 4.0",
    files=(
        # Equal in every cell to UCI's xls file, without its column of ids.
        PublishedFile(CSV, "md5:fba8a8b9af84956920c0349e62ecf8c6", 2_706_833),
    ),
    by_hand="download the zip of archive.ics.uci.edu/dataset/350, unpack it, and save "
    "its xls file as csv; UCI publishes no checksum",
)


def identify(path: Path) -> str:
    """Returns the official name of a file, "" for a stranger.

    The content identifies it, or else the name, which a damaged file keeps.
    """
    if ".csv" not in path.suffixes:
        return ""
    lines = files.head(path, HEAD).decode("utf-8-sig", "replace").splitlines()
    return CSV if NAME.search(path.name) or any(map(_is_header, lines[:2])) else ""


def _is_header(line: str) -> bool:
    columns = [cell.strip().strip('"') for cell in line.split(",")]
    return "LIMIT_BAL" in columns and LABEL in map(files.plain, columns)


class Credit(FileData):
    """UCI 350, default of credit card clients.

    Columns 0 to 17 are payments and bills, 18 to 32 the profile.
    """

    kind: Literal["credit"] = "credit"
    files: ClassVar[FileSet] = FileSet(
        "credit", (CSV,), PUBLISHED, FOLDERS, NAME, identify
    )
    scale: Scale = "standard"

    def make(self) -> Dataset:
        """Returns UCI 350: 18 payment and 15 profile columns, class 1 for a default.

        The 15 columns are LIMIT_BAL, AGE, and a column of zeros and ones for each code
        of SEX (1, 2), EDUCATION (0 to 6) and MARRIAGE (0 to 3); ID is left out.

        Source: UCI 350, Default of Credit Card Clients (Yeh and Lien, 2009); the
            encoding: F-16, the only one of all codes that makes 18 + 15 columns of the
            file's 23.
        """
        paths = self.files.complete()
        return _load(self, self.files.called(paths), paths[CSV])


def _load(config: Data, name: str, path: Path) -> Dataset:
    lines = files.head(path, HEAD).decode("utf-8-sig", "replace").splitlines()
    # UCI's xls file, saved as csv, keeps its first row, X1 to X23.
    cells = TextColumns(path, header=int(any(map(_is_header, lines[1:2]))))
    label = next((one for one in cells.names if files.plain(one) == LABEL), "")
    for one in (*PAYMENTS, *PROFILE, *CODES, label):
        if one not in cells.names:
            raise DataError(
                f"{path} must have the column "
                f"{one or 'default payment next month'!r}, got "
                f"{', '.join(cells.names)}; download it again"
            )
    x = [cells.matrix((*PAYMENTS, *PROFILE))]
    columns = [*PAYMENTS, *PROFILE]
    for one, codes in CODES.items():
        x.append(_coded(cells, one, codes)[:, None] == codes)
        columns += [f"{one}_{code}" for code in codes]
    y = _coded(cells, label, (0, 1))
    return divided(
        config,
        name,
        (np.concatenate(x, axis=1), y),
        num_classes=2,
        columns=tuple(columns),
    )


def _coded(cells: TextColumns, name: str, codes: tuple[int, ...]) -> np.ndarray:
    """Returns a column that holds nothing but some codes."""
    values = cells.numbers(name)
    wrong = ~np.isin(values, codes)
    if wrong.any():
        row = int(wrong.argmax())
        raise DataError(
            f"column {name!r} of {cells.path} must hold {codes[0]} to {codes[-1]}, got "
            f"{values[row]:g} in line {cells.lines[row]}; correct or download it again"
        )
    return values
