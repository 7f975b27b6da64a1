"""What a repetition of a study found, against what its capsule says."""

from typing import Any, NamedTuple

import pandas as pd

from ....analysis import claims
from ....analysis.frames import Study
from ....analysis.markup import no_formulas
from ...files.study import is_world
from . import contents
from .packing import Capsule

SAME = ("claim", "says", "origin")
"""Columns that tell which claim a verdict is about."""


class Repetition(NamedTuple):
    """What is the same here, and what is not.

    Attributes:
        verdicts: Column claim, and `then` and `now`, verdicts; a row per claim.
        same_runs: Runs whose traces are equal to the last bit.
        runs: All runs of the capsule.
        other_runs: Group and replicate of a run that differs, in words.
        environment: Name of each library, or property of the machine, that is not as
            it was, with what it was and is.
        inputs: Files that the study reads and that hold something else.
    """

    verdicts: pd.DataFrame
    same_runs: int
    runs: int
    other_runs: list[str]
    environment: dict[str, tuple[str, str]]
    inputs: list[str]

    @property
    def same_verdicts(self) -> bool:
        """Whether all verdicts are as they were."""
        return bool((self.verdicts["then"] == self.verdicts["now"]).all())

    @property
    def same(self) -> bool:
        """Whether all verdicts are as they were; without any, all traces."""
        return self.same_verdicts and (
            len(self.verdicts) > 0 or self.same_runs == self.runs
        )

    @property
    def same_machine(self) -> bool:
        """Whether machine and libraries are those of the capsule."""
        return not self.environment


def compare(capsule: Capsule, study: Study) -> Repetition:
    """Compares a study with the capsule that it repeats.

    Raises:
        StudyError: A table of either is damaged.
    """
    then, now = {}, {}
    if not is_world(capsule.manifest):
        then = _by_claim(capsule.table(contents.CLAIMS))
        now = _by_claim(no_formulas(claims.evaluate(study).astype(str), SAME))
    names = [*dict.fromkeys([*then, *now])]
    rows = [(key[0], then.get(key, "none"), now.get(key, "none")) for key in names]
    before = _by_run(capsule.table(contents.RUNS))
    after = _by_run(no_formulas(contents.digests(study).astype(str), ["group"]))
    others = [key for key in {**before, **after} if after.get(key) != before.get(key)]
    return Repetition(
        verdicts=pd.DataFrame(rows, columns=pd.Index(["claim", "then", "now"])),
        same_runs=len({**before, **after}) - len(others),
        runs=len({**before, **after}),
        other_runs=[f"{group} (replicate {number})" for group, number in others],
        environment=_environment(capsule.manifest, study.manifest),
        inputs=_inputs(capsule.manifest, study.manifest),
    )


def _by_claim(table: pd.DataFrame) -> dict[tuple[str, ...], str]:
    keys = zip(*(table[name] for name in SAME), strict=True)
    return dict(zip(keys, table["verdict"], strict=True))


def _by_run(table: pd.DataFrame) -> dict[tuple[str, str], str]:
    keys = zip(table["group"], table["replicate"], strict=True)
    return dict(zip(keys, table["sha256"], strict=True))


def _environment(then: Any, now: Any) -> dict[str, tuple[str, str]]:
    old, new = (each.get("environment") or {} for each in (then, now))
    names = [*dict.fromkeys([*old, *new])]
    return {
        name: (str(old.get(name, "none")), str(new.get(name, "none")))
        for name in names
        if old.get(name) != new.get(name)
    }


def _inputs(then: Any, now: Any) -> list[str]:
    old, new = (each.get("inputs") or {} for each in (then, now))
    names = dict.fromkeys([*old, *new])
    return [
        name
        for name in names
        if (old.get(name) or {}).get("sha256") != (new.get(name) or {}).get("sha256")
    ]
