"""Studies to which replicates are added in stages, until their claims are decided.

Each stage ends with an interim analysis of the claims. The number of analyses is fixed
beforehand and is in the study's manifest as `scenario.looks`, so that the study is
judged by the levels of its plan (`stalesim.analysis.claims.sequential`).
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from ..files.study import Study, is_world, load
from ..files.study.manifest import NAME
from ..parts.errors import StudyError
from ..parts.json_text import Tree
from ..scenario.grid import REPLICATES, ZIPPED
from ..scenario.scenario import Scenario

FIRST, GROWTH = 10, 1.4
"""Replicates of the first interim analysis, and the growth from one to the next."""
LEAST, MOST = 6, 20
"""Replicates below which nothing is decided; and those of the last analysis, unless the
scenario has more."""

Decided = Callable[[Study], bool]
"""Returns whether every claim of a study is decided."""


def looks(most: int) -> tuple[int, ...]:
    """Returns the replicates at each analysis of a plan: 10, 14, 19, 27, 38, ...

    None but the last one is more than four fifths of it.

    Raises:
        StudyError: there are too few of them to decide anything.
    """
    if most < LEAST:
        raise StudyError(
            f"--max-replicates (most) must be >= {LEAST}, below which nothing is "
            f"decided, got {most}; give more"
        )
    found, number = [], FIRST
    while 5 * number <= 4 * most:
        found.append(number)
        number = int(FIRST * GROWTH ** len(found))
    return (*found, most)


def stages(
    scenario: Scenario, folder: Path | None, most: int | None = None
) -> Iterator[Scenario]:
    """Yields the scenario with the replicates of each remaining analysis, in order.

    A study that was started so continues where it is.

    Args:
        scenario: Scenario of the study. If it has `looks`, they are the plan.
        folder: Folder of the study, whose lock is held; None for a new study.
        most: Replicates of the last analysis; by default 20, or the scenario's if more.

    Raises:
        StudyError: there is nothing to decide, or the folder holds a study that was
            looked at without a plan, or by another one.
    """
    if not scenario.claims:
        raise StudyError(
            f"{scenario.name}: must have claims to run until they are decided, but has "
            f"none; add some, or leave out --until-decided"
        )
    if REPLICATES in scenario.sweep.get(ZIPPED, {}):
        raise StudyError(
            f"{scenario.name}: must have no sweep.zipped.replicates to run until "
            f"claims are decided, which adds replicates to all runs; remove them"
        )
    plan = planned(scenario, most)
    started = _started(folder)
    done = started.get("replicates", 0)
    known = tuple(started.get("looks") or ())
    if started and not known:
        raise StudyError(
            f"{folder}: must be new, or a study that was started by --until-decided, "
            f"but it was started with a fixed number of replicates ({done}); choose "
            f"another folder by --out"
        )
    if known and known != plan and (most is not None or scenario.looks):
        raise StudyError(
            f"{folder}: must keep to its interim analyses at {_listed(known)} "
            f"replicates, got {_listed(plan)}; leave out --max-replicates, or choose "
            f"another folder by --out"
        )
    plan = known or plan
    for number in [n for n in plan if n >= done] or [done]:
        yield scenario.model_copy(update={"replicates": number, "looks": plan})


def is_looked_at(scenario: Scenario) -> bool:
    """Returns whether a study is at a planned analysis, and not extended by hand."""
    return scenario.replicates in scenario.looks


def planned(scenario: Scenario, most: int | None) -> tuple[int, ...]:
    """Returns the replicates at each analysis of a scenario, as `stages` takes them."""
    if scenario.looks and most not in (None, scenario.looks[-1]):
        raise StudyError(
            f"--max-replicates must be the {scenario.looks[-1]} replicates of the "
            f"scenario's last interim analysis, got {most}; leave it out"
        )
    return scenario.looks or looks(most or max(MOST, scenario.replicates))


def continued(scenario: Scenario, folder: Path) -> Scenario:
    """Returns a scenario with the planned analyses of the study in a folder.

    They stay with it when it is extended.
    """
    known = tuple(_started(folder).get("looks") or ())
    if scenario.looks or not known:
        return scenario
    return scenario.model_copy(update={"looks": known})


def _started(folder: Path | None) -> Tree:
    if folder is None or not (folder / NAME).exists():
        return {}
    manifest = load(folder).manifest
    # A timeline is no study; opening its folder as a study says so.
    return {} if is_world(manifest) else manifest["scenario"]


def _listed(plan: tuple[int, ...]) -> str:
    return ", ".join(map(str, plan))
