"""Groups that claims are about, and whether planned runs can decide them. No pandas."""

import json
import math
from collections.abc import Iterable, Sequence

from ...simulator.scenario.claims import Claim, is_at
from ...simulator.scenario.scenario import Scenario
from ...simulator.scenario.study import Run, expand
from ..facts import Entry
from .sequential import least


class ClaimedGroups:
    """The groups of runs of a study, each with a variant and swept values.

    Args:
        named: Variant, name and swept values of each group, in the order of their first
            runs.
    """

    def __init__(self, named: Iterable[tuple[str, str, Entry]]) -> None:
        self._parameters: dict[str, Entry] = {}
        self._groups: dict[str, list[str]] = {}
        for variant, group, parameters in named:
            self._parameters[group] = parameters
            self._groups.setdefault(variant, []).append(group)

    def __contains__(self, group: str) -> bool:
        return group in self._parameters

    def parameters(self, group: str) -> Entry:
        """Returns the swept keys of a group and their values."""
        return self._parameters[group]

    def groups(self, variant: str) -> list[str]:
        """Returns the groups of a variant, in the order of their first runs."""
        return self._groups.get(variant, [])


def of_runs(runs: Sequence[Run]) -> ClaimedGroups:
    """Returns the groups of a scenario, by the runs of its first replicate."""
    return ClaimedGroups(
        (run.variant, run.label, json.loads(json.dumps(run.parameters))) for run in runs
    )


def undecidable(scenario: Scenario) -> list[str]:
    """Returns why the planned runs cannot decide claims of a scenario.

    A line on its largest family that cannot: however clear its runs are, the smallest
    p-value of so few does not pass Holm's correction.
    """
    groups = of_runs(expand(scenario.model_copy(update={"replicates": 1})))
    families: dict[str, int] = {}
    for claim in scenario.claims:
        at = points(groups, claim) or [()]
        families[claim.origin] = families.get(claim.origin, 0) + len(at)
    size = max(families.values(), default=0)
    needed = least(size, scenario.looks) if size else 0
    most = scenario.looks[-1] if scenario.looks else scenario.replicates
    few = (needed or math.inf) > most
    return [too_few(most, size, scenario.looks)] if few else []


def too_few(replicates: int, family: int, looks: tuple[int, ...] = ()) -> str:
    """Returns a sentence on the number of replicates that a family of claims needs."""
    claims = "a claim" if family == 1 else f"a family of {family} claims"
    needed = least(family, looks)
    if needed is None:
        at = ", ".join(map(str, looks))
        return f"no interim analysis at {at} replicates can decide {claims}"
    return f"{replicates} replicates cannot decide {claims}, which needs {needed}"


def names_in(claim: Claim) -> tuple[str, ...]:
    """Returns the names that a claim has, of variants or groups."""
    return tuple(name for names in claim.variants().values() for name in names)


def points(known: ClaimedGroups, claim: Claim) -> list[tuple[str, ...]]:
    """Returns the groups that a claim is about: as named, or at each swept point.

    A variant that is not swept, or over fewer keys, is compared at every point of the
    others that agrees with its own. A claim along a sweep is about all groups of its
    variant at once.
    """
    names, at = names_in(claim), claim.at

    def is_about(group: str) -> bool:
        return is_at(known.parameters(group), at)

    if claim.along_sweep:
        every = (group for name in names for group in known.groups(name))
        mine = tuple(filter(is_about, every))
        return [mine] if mine else []
    if all(name in known and is_about(name) for name in names):
        return [names]
    about = {name: list(filter(is_about, known.groups(name))) for name in names}
    finest = max(names, key=lambda name: _most_keys(known, about[name]))
    matched = [
        tuple(_matching(known, group, about[name]) for name in names)
        for group in about[finest]
    ]
    return [groups for groups in matched if all(groups)]


def _most_keys(known: ClaimedGroups, groups: Sequence[str]) -> int:
    return max((len(known.parameters(group)) for group in groups), default=0)


def _matching(known: ClaimedGroups, group: str, others: Sequence[str]) -> str:
    mine = known.parameters(group).items()
    same = (each for each in others if known.parameters(each).items() <= mine)
    return next(same, "")
