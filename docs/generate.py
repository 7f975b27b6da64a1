"""Completes parts.csv of the core and of each extra: names and what parts are.

    python docs/generate.py             # completes them
    python docs/generate.py --check     # fails if one is not up to date

The reference is generated with the site (`docs/pages.py`), and the pages of evidence by
`python -m evidence.generate`.
"""

import csv
import io
import sys
from pathlib import Path

from stalesim.simulator.parts import attached, catalogue


def listing(path: Path) -> str:
    """Returns what a table of parts must hold."""
    text = io.StringIO()
    rows = map(catalogue.completed, attached.read(path))
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def main(arguments: list[str]) -> int:
    """Writes the tables, or checks them."""
    stale = []
    for path in attached.tables():
        table = listing(path)
        if arguments != ["--check"]:
            path.write_text(table, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != table:
            stale.append(f"{path} must be up to date; run python docs/generate.py\n")
    sys.stderr.writelines(stale)
    return bool(stale)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
