"""What a scenario of `scenarios/external/` says of its source: claim and numbers.

It stands in comments of the scenario's own file, lines that begin with `#| `, which
together are YAML. So a paper is one file, which any command can run.
"""

import re
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from pydantic import Field, ValidationError, model_validator

from stalesim.simulator.parts.base import Config
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.parts.messages import first_error
from stalesim.simulator.scenario import dialect
from stalesim.simulator.scenario.reading import read_any
from stalesim.simulator.scenario.setting import BaseScenario

FOLDER = Path("scenarios/external")
MARK = "#| "
EQUALS, AT_MOST, AT_LEAST, APART = "equals", "at most", "at least", "not comparable"
RULES = {
    "equals": EQUALS,
    "at_most": AT_MOST,
    "at_least": AT_LEAST,
    "context": APART,
}
"""Rule of a number by the key that it stands under."""
CLOCK, SAMPLES, LEARNING = "clock", "samples", "learning"
Words = Annotated[str, Field(min_length=1)]


class Number(Config):
    """A published number or bound of one quantity of one variant."""

    variant: Words = "base"
    """Variant, as tables of results name it."""
    quantity: Words
    """Column of what `evidence/studies/external.py` measures."""
    over: str = ""
    """Variant by whose value it is divided, replicate by replicate."""
    equals: float | None = None
    """The number."""
    at_most: float | None = None
    """Upper bound."""
    at_least: float | None = None
    """Lower bound."""
    context: float | None = None
    """A number that is shown, and not comparable."""
    within: Annotated[float, Field(ge=0)] = 0.0
    """Tolerance of `equals`, as a share."""
    source: Words
    """Formula, or place in the paper."""
    why: str = ""
    """What `context` depends on that is not published."""

    @model_validator(mode="after")
    def _one_rule(self) -> "Number":
        given = [key for key in RULES if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError(
                f"must have exactly one of {', '.join(RULES)}, got "
                f"{' and '.join(given) or 'none'}; write for example equals: 1"
            )
        if (self.why != "") != (given[0] == "context"):
            raise ValueError("must have why with context, and with nothing else")
        return self

    def row(self) -> dict[str, Any]:
        """Returns the line of the table of numbers."""
        key = next(key for key in RULES if getattr(self, key) is not None)
        return {
            "group": self.variant,
            "quantity": self.quantity,
            "over": self.over,
            "rule": RULES[key],
            "published": getattr(self, key),
            "within": self.within,
            "source": self.source,
            "why": self.why,
        }


class Sheet(Config):
    """One claim of one source, and the numbers by which it is judged."""

    claim: Words
    """The claim, a sentence."""
    setting: Annotated[str, Field(pattern=r"^(as stated|smaller|other): .")]
    """The setting next to that of the authors, and why it differs."""
    recalled: str = ""
    """What is from memory, and was not looked up."""
    numbers: Annotated[tuple[Number, ...], Field(min_length=1)]
    """What was published."""


def read(path: Path) -> Sheet:
    """Returns the sheet of a scenario's file.

    Args:
        path: The file.

    Raises:
        SystemExit: It has none, or one with a mistake: file, line, what is wrong.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    # Other lines are left blank, so that places are those of the file.
    text = "\n".join(
        line[len(MARK) :] if line.startswith(MARK) else "" for line in lines
    )
    try:
        tree, marks = dialect.compose(text, lambda line: f"{path}:{line}")
    except ScenarioError as error:
        raise SystemExit(str(error)) from None
    if not isinstance(tree, dict):
        raise SystemExit(
            f"{path}: must say what was published in lines that begin with {MARK!r}; "
            f"see evidence/pages/external.md"
        )
    try:
        return Sheet.model_validate(tree)
    except ValidationError as error:
        keys, message = first_error(error, tree, Sheet)
        heads = (keys[:size] for size in range(len(keys), -1, -1))
        line = next(marks[head][0] for head in heads if head in marks)
        raise SystemExit(f"{path}:{line}: {message}") from None


def claims(root: Path) -> pd.DataFrame:
    """Returns a row per scenario of the folder, by year: its paper and its claim.

    Args:
        root: Folder of the repository.

    Returns:
        Columns scenario, year (or `program`), paper, claim, of (`clock` without a
        problem, `samples`, `learning`), setting, recalled.
    """
    rows = []
    for path in sorted((root / FOLDER).glob("*.yaml")):
        sheet, scenario = read(path), read_any(path)
        year = re.search(r"\((\d{4})\)", scenario.source)
        of = LEARNING if getattr(scenario, "problem", None) is not None else CLOCK
        rows.append(
            {
                "scenario": path.stem,
                "year": year[1] if year else "program",
                "paper": scenario.source,
                "claim": sheet.claim,
                "of": of if isinstance(scenario, BaseScenario) else SAMPLES,
                "setting": sheet.setting,
                "recalled": sheet.recalled,
            }
        )
    return pd.DataFrame(rows).sort_values("year", kind="stable", ignore_index=True)


def numbers(root: Path) -> pd.DataFrame:
    """Returns a row per published number, in the order of the files' names.

    Args:
        root: Folder of the repository.

    Returns:
        Columns scenario, group, quantity, over, rule, published, within, source, why.
    """
    return pd.DataFrame(
        [
            {"scenario": path.stem, **number.row()}
            for path in sorted((root / FOLDER).glob("*.yaml"))
            for number in read(path).numbers
        ]
    )
