"""Generates the table of parts that `stalesim list` reads: parts.csv.

    python docs/generate.py             # writes it
    python docs/generate.py --check     # fails if it is not up to date

The reference is generated with the site (`docs/pages.py`), and the pages of evidence by
`python -m evidence.generate`.
"""

import csv
import io
import sys

from stalesim.simulator.config import catalogue


def listing() -> str:
    """Returns the table of parts."""
    text = io.StringIO()
    rows = catalogue.own_listing(*catalogue.KINDS)
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def main(arguments: list[str]) -> int:
    """Writes the table, or checks it."""
    path = catalogue.LISTED
    if arguments != ["--check"]:
        path.write_text(listing(), encoding="utf-8")
        return 0
    if path.exists() and path.read_text(encoding="utf-8") == listing():
        return 0
    sys.stderr.write(f"{path} is not up to date: run python docs/generate.py\n")
    return 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
