"""Published sentences with numbers, drawn at random to be read against their files.

`python -m evidence.generators.sentences COMMIT` prints the draw of the pages of a
commit as csv, the first two columns of evidence/sentences.csv.
"""

import csv
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

from stalesim.analysis.markup import literal

from ..rows import ROOT

LISTED = "evidence/sentences.csv"
SEED, NUMBER = 37, 40
NO_PROSE = re.compile(
    r"```.*?```|~~~.*?~~~|<!--.*?-->|^#.*?$|^\s*\|.*?$|^ {4,}.*?$|!\[.*?\]\(.*?\)",
    re.DOTALL | re.MULTILINE,
)
"""Blocks of code, comments, headings, rows of tables, figures with their captions."""
END = re.compile(r"(?<=[.!?])[*_)]*\s+(?=[*_\"(]*[A-Z`\[])")
LABEL = re.compile(
    r"`[^`]*`|\]\([^)]*\)|\b(?:[Ff]igures?|[Tt]ables?|[Ss]ections?|[Tt]heorems?|Python|"
    r"[Pp]ropositions?|[Rr]emarks?|[Ll]emmas?|[Ee]quations?|eq\.|[Aa]lgorithms?|"
    r"[Cc]hapters?|[Ii]ssues?|[Cc]ase|[Ss]eeds?) \d[\w().]*(?:(?:,| and| to) \d\S*)*|"
    r"\b(?:19|20)\d\d\b"
)
"""Digits that name a place or a year, and those of code."""
MEASURE = re.compile(r"(?<![\w.-])[+-]?\d")


def pages(commit: str) -> Iterator[tuple[str, str]]:
    """Yields path and text of each page of a commit but those of the reference."""
    for path in _git("ls-tree", "-r", "--name-only", commit).splitlines():
        mine = path == "README.md" or path.startswith(("docs/", "evidence/pages/"))
        if mine and path.endswith(".md") and "docs/reference/" not in path:
            yield path, _git("show", f"{commit}:{path}")


def sentences(text: str) -> list[str]:
    """Returns the sentences of a page's prose that have a number in them."""
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", NO_PROSE.sub("\n\n", text))
    lines = (re.sub(r"^(?:[-*]|\d+\.) ", "", " ".join(b.split())) for b in blocks)
    every = [sentence for line in lines for sentence in END.split(line)]
    return [each for each in every if MEASURE.search(LABEL.sub("", each))]


def draw(commit: str) -> list[tuple[str, str]]:
    """Returns `NUMBER` pages and sentences of a commit, all sentences alike likely."""
    found = [(path, each) for path, text in pages(commit) for each in sentences(text)]
    return random.Random(SEED).sample(found, NUMBER)


def table() -> str:
    """Returns how many sentences of each draw were supported, and what others said."""
    with (ROOT / LISTED).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    drawn: dict[str, Counter[str]] = {}
    for row in rows:
        drawn.setdefault(row["commit"], Counter())[row["verdict"]] += 1
    counts = (
        f"at {commit} {', '.join(f'{n} {word}' for word, n in sorted(found.items()))}"
        for commit, found in drawn.items()
    )
    others = [row for row in rows if row["verdict"] != "supported"]
    lines = [
        f"Of each draw's forty: {'; '.join(counts)}. Not supported were:\n",
        f"| {' | '.join(rows[0])} |",
        f"|{' --- |' * len(rows[0])}",
        *(f"| {' | '.join(map(literal, row.values()))} |" for row in others),
    ]
    return "\n".join(lines)


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(["page", "sentence"])
    rows.writerows(draw(sys.argv[1]))
