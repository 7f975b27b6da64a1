"""Tuned values of each variant of a comparison, their effect and their cost."""

import pandas as pd

from ..simulator.files.study import StudyError
from ..simulator.parts.errors import documented_key
from ..simulator.scenario import tuning
from ..simulator.scenario.study import short_names
from ..simulator.scenario.tuning import Choice, Compare, Point, Trial
from .folders import takes_folder
from .frames import Study

TITLE = "each variant at its own best"
DIGITS = 4


@takes_folder
def table(study: Study) -> pd.DataFrame:
    """Returns a row per variant and entry that was tuned for it.

    Returns:
        Columns group; entry; best, the value that was chosen; `at best`, the mean
        objective of its trial; for a range `below` and `above`, those of the trials
        next to it, and by how much they are worse; trials, runs and virtual seconds of
        the variant's tuning.

    Raises:
        StudyError: The study has tuned no variants.
    """
    compare = _compare(study)
    if compare is None or not compare.found:
        raise StudyError(
            f"study {study.manifest['name']!r} has tuned no variants, so that there "
            f"are no choices; add compare to its scenario and run it"
        )
    rows, spaces = [], map(compare.space, compare.found)
    names = short_names((*dict.fromkeys(key for space in spaces for key in space),))
    for variant, choice in compare.found.items():
        sign = -1.0 if tuning.falls(tuning.objective(compare.objective)) else 1.0
        space = compare.space(variant)
        best = tuning.tried(choice, choice.best)
        sides = list(tuning.sides(space, choice.best))
        for key, searched in space.items():
            neighbours = ["", ""]
            if not isinstance(searched, tuple):
                points = [each for at, each in sides if at == key]
                neighbours = [_next_to(choice, best, p, key, sign) for p in points]
            best_here = _number(choice.best[key]), _shown(best)
            cost = len(choice.trials), choice.runs, _number(choice.time)
            rows.append((variant, names[key], *best_here, *neighbours, *cost))
    columns = ["group", "entry", "best", "at best", "below", "above"]
    columns += ["trials", "runs", "virtual s"]
    return pd.DataFrame(rows, columns=pd.Index(columns))


@takes_folder
def notes(study: Study) -> list[str]:
    """Returns what the columns of `table` are; nothing where there is no table."""
    compare = _compare(study)
    if compare is None or not compare.found:
        return []
    sought = tuning.objective(compare.objective)
    of = compare.objective
    if sought.target is not None:
        of = f"virtual s to {sought.metric} {sought.target:g}"
    elif sought.at is not None:
        of = f"{sought.metric} at {sought.at:g} {sought.unit}"
    budget = compare.budget
    each = f"{budget.trials} trials" if budget.trials else f"{budget.time:g} virtual s"
    measured = (
        f"at best, below, above: {of}, the mean of {compare.replicates} replicates of "
        f"the tuning, whose seeds are not those of the results; below and above: at "
        f"half and twice the value, or a step of a linear grid away, nearer where that "
        f"is not valid"
    )
    cost = f"trials, runs, virtual s: what tuning cost, of at most {each} a variant"
    last = [(key, name) for name, c in compare.found.items() for key in c.limits]
    ends = {f"{documented_key(key)} of {name}" for key, name in last}
    limits = f"no value beyond its best is valid: {', '.join(sorted(ends))}"
    return [measured, cost, *([limits] if ends else [])]


def _compare(study: Study) -> Compare | None:
    given = study.manifest["scenario"].get("compare")
    return Compare.model_validate(given) if given else None


def _next_to(
    choice: Choice, best: Trial | None, points: list[Point], key: str, sign: float
) -> str:
    """Returns what the trial on one side of the best came to, and what is lost.

    Of the points there, which differ in `key`, the first that is valid was tried;
    `sign` is 1 where less is better, -1 where more is.
    """
    trial = next(filter(None, (tuning.tried(choice, at) for at in points)), None)
    if trial is None:
        return "not valid"
    shown = f"{_number(trial.point[key])}: {_shown(trial)}"
    if best is None or best.value is None or trial.value is None:
        return shown
    if best.missed != trial.missed:  # means of other replicates
        return shown
    more = sign * (trial.value - best.value)
    lost = f"{abs(more):.2g} {'better' if more < 0 else 'worse'}" if more else "equal"
    return f"{shown} ({lost})"


def _shown(trial: Trial | None) -> str:
    if trial is None:
        return ""
    value = "never" if trial.value is None else f"{trial.value:.{DIGITS}g}"
    return f"{value}, {trial.missed} missed" if trial.missed else value


def _number(value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:.{DIGITS}g}" if number else str(value)
