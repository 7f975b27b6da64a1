"""A comparison of variants, each at its own best, as two studies.

The trials are a study in the folder `tuning`: a grid of every variant, and then both
sides of its best, until none is better. The study itself has the variants at their
choices, and seeds that no trial had; its claims are judged as those of any other.

Trials follow from the scenario and from results. So an interrupted comparison repeats
its steps, and finds finished runs in its folder.
"""

import shutil
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..engine import device
from ..files import inputs
from ..files.study import Study, load
from ..files.study.disk import locked
from ..files.study.manifest import NAME
from ..parts.errors import StudyError, counted, documented_key
from ..parts.lazy import Late
from ..scenario import tuning
from ..scenario.reading import validated
from ..scenario.scenario import Scenario
from ..scenario.study import Run, VariantError, expand
from ..scenario.tuning import Choice, Objective, Point, Trial
from . import origins, planning, running
from .planning import OPEN, TUNING
from .progress import Progress, Stages, bar
from .study_folder import StudyFolder, refuse_others

if TYPE_CHECKING:
    from ...analysis import racing
else:
    racing = Late("...analysis.racing", __package__)  # pandas, a second

Rank = tuple[float, ...]
"""Order of trials, the best first: runs without a value, their mean; then the same of
final values."""


def compare(
    scenario: running.Source,
    folder: str | Path | None = None,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    checkpoint_s: float | None = running.CHECKPOINT_S,
    meanwhile: Callable[[], None] | None = None,
) -> Study:
    """Tunes every variant of a scenario, and runs all with their tuned values.

    Args:
        scenario: Scenario with `compare`.
        folder: Folder for the study, or of a comparison to continue; by default a
            temporary one, which lives as long as the study.
        jobs: Number of processes, as in `simulate`.
        progress: Called with how far the comparison is, as in `simulate`.
        checkpoint_s: Real seconds, as in `simulate`.
        meanwhile: Called while others are at work, as in `simulate`.

    Returns:
        The study; `stalesim.claims.evaluate` judges it, `stalesim.choices.table` shows
        the tuned values.

    Raises:
        UserError: Something in the scenario or the folder is wrong, a run failed, or
            the best value of a variant is at the edge of those that the budget allowed.
    """
    config = planned(running.scenario_from(scenario))
    path = running.new_folder(folder)
    simulate = partial(running.simulate, jobs=jobs, checkpoint_s=checkpoint_s)
    _begin(config, path)
    search = _Search(config, path, simulate, progress or bar(config.name))
    config = search.end()
    report = search.judging(config)
    study = simulate(config, path, progress=report, meanwhile=meanwhile)
    if folder is None:
        weakref.finalize(study, shutil.rmtree, path, ignore_errors=True)
    return study


def planned(config: Scenario) -> Scenario:
    """Returns the scenario of a comparison before its first trial.

    Raises:
        StudyError: There is none, or it has its choices already.
        VariantError: A point of a grid gives no valid scenario.
    """
    if config.compare is None or config.compare.found is not None:
        remedy = "add an entry compare, or run it by stalesim run"
        if config.compare is not None:
            remedy = "its choices were found before: run it, or remove compare.found"
        raise StudyError(f"{config.name}: must have compare to be compared; {remedy}")
    firsts: dict[str, Run] = {}
    for run in expand(_grids(config).model_copy(update={"replicates": 1})):
        firsts.setdefault(run.variant, run)
    found = {
        name: Choice(best=run.parameters, trials=(), runs=0, time=0)
        for name, run in firsts.items()
    }
    at_best = tuning.at_best(config, found)
    try:
        judged = expand(at_best.model_copy(update={"replicates": 1}))
    except VariantError as error:  # of an entry in a list, which only a sweep can set
        raise StudyError(
            f"{config.name}: compare must tune entries that a variant can set, but "
            f"{error}"
        ) from None
    for run in judged:
        first = firsts[run.variant]
        trees = [each.scenario.model_dump(mode="json") for each in (run, first)]
        for key, value in first.parameters.items():
            now, wanted = (_entry(tree, key) for tree in trees)
            if now != wanted:
                raise StudyError(
                    f"{config.name}: compare must tune entries that a variant can set, "
                    f"but {key} of {run.variant} is {now!r} in place of {value!r}; "
                    f"tune another entry"
                )
    return config


def _entry(tree: object, key: str) -> object:
    first, _, rest = key.partition(".")
    if isinstance(tree, list):
        found = tree[int(first)]
    else:
        found = tree.get(first) if isinstance(tree, dict) else None
    return _entry(found, rest) if rest else found


def first_trials(config: Scenario) -> Scenario:
    """Returns the scenario of the grids of a comparison, its first trials.

    Raises:
        UserError: The scenario cannot be compared, as in `compare`.
    """
    return _grids(planned(config))


def _grids(config: Scenario) -> Scenario:
    assert config.compare is not None
    space = config.compare.space
    points = {name: tuning.grid(space(name)) for name in config.variants}
    return tuning.study_of_trials(config, points)


def _begin(config: Scenario, path: Path) -> None:
    """Writes the study's manifest before its runs are known, so that it is resumed."""
    device.before_import()
    device.use_cores(planning.processes(0))  # before JAX is asked for its devices
    refuse_others(path)  # before a lock is put there
    with locked(path):
        folder = StudyFolder(path)
        known = None if folder.is_new else folder.manifest
        mine = config.model_dump(mode="json")["compare"]
        held = known["scenario"].get("compare") if known else mine
        judged = known and known["runs"] and {**(held or {}), "found": None}
        if not held or (judged and judged != {**mine, "found": None}):
            raise StudyError(
                f"{path}: must be new, or hold this very comparison, but holds another "
                f"study; choose another folder by --out"
            )
        folder.read(inputs.collect(run.scenario for run in expand(config)))
        if known:
            origins.check_modules(path, known, folder.inputs)
            origins.check_program(path, known, folder.inputs)
        if not (known and known["runs"]):
            folder.begin(config, [], [])


class _Search:
    """The trials of all variants, under way."""

    def __init__(
        self,
        config: Scenario,
        path: Path,
        simulate: Callable[..., Study],
        report: Progress,
    ) -> None:
        assert config.compare is not None
        self._config, self._compare, self._path = config, config.compare, path
        self._simulate = simulate
        self._space = {name: self._compare.space(name) for name in config.variants}
        grids = {name: tuning.grid(space) for name, space in self._space.items()}
        self._next, self._tried = grids, {name: list[Point]() for name in grids}
        self._ranks: dict[str, list[Rank]] = {}
        self._times: dict[str, list[float]] = {}
        budget = self._compare.budget.trials
        most = sum(budget or 2 * len(grid) for grid in grids.values())
        self._trials = most * self._compare.replicates
        self._judging = len(expand(config))
        self._whole = Stages(report, self._trials + self._judging)

    def end(self) -> Scenario:
        """Tries what there is to try; returns the scenario with its choices."""
        self._refuse_other_grids()
        study: Study | None = None
        while any(self._next.values()):
            for name, points in self._next.items():
                self._tried[name] += points
            study = self._extended()
            self._measure(study)
            self._next = {
                name: self._sides(name)[0][: self._room(name)] for name in self._tried
            }
        assert study is not None  # a grid has points
        for name in self._tried:
            self._refuse_border(name)
        known = _points(study)
        if any(len(known[name]) > len(mine) for name, mine in self._tried.items()):
            raise StudyError(
                f"{study.folder}: must have the trials of this comparison alone, but "
                f"more were tried before, by a larger budget or another one; choose "
                f"another folder by --out"
            )
        found = {name: self._choice(name) for name in self._tried}
        return validated(tuning.at_best(self._config, found).model_dump(mode="json"))

    def _refuse_other_grids(self) -> None:
        """Refuses a folder whose first trials are not of this comparison's grids."""
        folder = self._path / TUNING
        known = _points(load(folder)) if (folder / NAME).exists() else {}
        for name, grid in self._next.items():
            first = known.get(name, [])[: len(grid)]
            if not all(any(tuning.same(one, at) for at in grid) for one in first):
                raise StudyError(
                    f"{folder}: must have the trials of this comparison alone, but "
                    f"{name} was tried on another grid; choose another folder by --out"
                )

    def judging(self, config: Scenario) -> Progress:
        """Returns what hears of the runs that judge."""
        tried = sum(len(each) for each in self._tried.values())
        runs = self._compare.replicates * tried
        return self._whole.stage(self._part(runs), 1.0, runs + len(expand(config)))

    def _part(self, runs: int) -> float:
        return min(runs, self._trials) / (self._trials + self._judging)

    def _extended(self) -> Study:
        """Returns the study of all trials so far; what a former session ran stays."""
        folder = self._path / TUNING
        study = load(folder) if (folder / NAME).exists() else None
        known = _points(study) if study is not None else {}
        points, new = {}, 0
        for name, tried in self._tried.items():
            mine = known.get(name, [])
            names = {*map(tuning.name, mine)}
            more = [point for point in tried if tuning.name(point) not in names]
            points[name], new = [*mine, *more], new + len(more)
        runs = study.manifest["runs"] if study is not None else []
        if study is not None and not new and not _open(runs):
            return study
        every = self._compare.replicates * sum(map(len, points.values()))
        report = self._whole.stage(self._part(len(runs)), self._part(every), every)
        stage = tuning.study_of_trials(self._config, points)
        return self._simulate(stage, folder, progress=report)

    def _measure(self, study: Study) -> None:
        sought = tuning.objective(self._compare.objective)
        values = racing.values(study, sought)
        finals = racing.values(study, Objective(sought.metric))
        times: dict[tuple[str, str], float] = {}
        for run in study.manifest["runs"]:
            trial = run["variant"], tuning.name(run["parameters"])
            times[trial] = times.get(trial, 0.0) + run["virtual_s"]
        rank = racing.rank
        for name, tried in self._tried.items():
            trials = [(name, tuning.name(point)) for point in tried]
            self._ranks[name] = [
                (*rank(values[trial]), *rank(finals[trial])) for trial in trials
            ]
            self._times[name] = [times[trial] for trial in trials]

    def _best(self, name: str) -> int:
        ranks = self._ranks[name]
        return min(range(len(ranks)), key=ranks.__getitem__)  # of equal ones the first

    def _sides(self, name: str) -> tuple[list[Point], list[str]]:
        """Returns what is yet to be tried next to the best, and where nothing can be.

        The latter are entries beyond whose best value no scenario is valid.
        """
        best, left, limits = self._tried[name][self._best(name)], [], []
        for key, points in tuning.sides(self._space[name], best):
            point = next((at for at in points if self._is_valid(name, at)), None)
            if point is None:
                limits.append(key)
            elif not any(tuning.same(point, at) for at in self._tried[name]):
                left.append(point)
        return left, list(dict.fromkeys(limits))

    def _is_valid(self, name: str, point: Point) -> bool:
        if any(tuning.same(point, at) for at in self._tried[name]):
            return True
        alone = {"variants": {name: self._config.variants[name]}}
        config = self._config.model_copy(update=alone)
        trial = tuning.study_of_trials(config, {name: [point]})
        try:
            expand(trial.model_copy(update={"replicates": 1}))
        except VariantError:
            return False
        return True

    def _room(self, name: str) -> int:
        """Returns how many more trials the budget has room for."""
        budget, times = self._compare.budget, self._times[name]
        if budget.trials is not None:
            return budget.trials - len(times)
        assert budget.time is not None
        left = budget.time - sum(times)
        if left < 0 and len(times) == len(tuning.grid(self._space[name])):
            raise StudyError(
                f"{self._path}: compare.budget.time must be >= {sum(times):.4g} "
                f"virtual s, which the grid of {name} took, got {budget.time:g}; raise "
                f"it, or lower num"
            )
        return max(0, int(left / max(times))) if max(times) else 0

    def _refuse_border(self, name: str) -> None:
        """Refuses a best value next to which something may be better."""
        index = self._best(name)
        best, space = self._tried[name][index], self._space[name]
        if self._ranks[name][index][2:] == (self._compare.replicates, np.inf):
            raise StudyError(
                f"{self._path}: every trial of {name} diverged; search other values in "
                f"compare"
            )
        left, ends = self._sides(name)[0], tuning.at_end(space, best)
        keys = {key for point in left for key in point if point[key] != best[key]}
        keys = sorted(keys | {*ends})
        if not keys:
            return
        shown = ", ".join(f"{documented_key(key)}={best[key]}" for key in keys)
        now = f"and repeat it with --out {self._path}"
        remedy = f"raise compare.budget {now}, or move the grid"
        if ends:
            remedy = f"add values to its list beyond it {now}, or write a range"
        raise StudyError(
            f"{self._path}: {name} must be judged at its best, but after "
            f"{counted(len(self._tried[name]), 'trial')} the best, {shown}, is at the "
            f"edge of the tried values; {remedy} and choose another folder"
        )

    def _choice(self, name: str) -> Choice:
        sign = -1.0 if tuning.falls(tuning.objective(self._compare.objective)) else 1.0
        trials = []
        for point, (missed, mean, *_) in zip(
            self._tried[name], self._ranks[name], strict=True
        ):
            value = sign * mean if np.isfinite(mean) else None
            trials.append(Trial(point=point, value=value, missed=int(missed)))
        return Choice(
            best=self._tried[name][self._best(name)],
            trials=tuple(trials),
            runs=self._compare.replicates * len(trials),
            time=sum(self._times[name]),
            limits=tuple(self._sides(name)[1]),
        )


def _open(runs: Sequence[Mapping[str, object]]) -> bool:
    return any(run["stop"] in OPEN for run in runs)


def _points(study: Study) -> dict[str, list[Point]]:
    """Returns the points of each variant that a study of trials has, in their order."""
    found: dict[str, dict[str, Point]] = {}
    for run in study.manifest["runs"]:
        mine = found.setdefault(run["variant"], {})
        mine.setdefault(tuning.name(run["parameters"]), run["parameters"])
    return {name: [*mine.values()] for name, mine in found.items()}
