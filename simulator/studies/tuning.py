"""A search of the best values of some entries of a scenario, as a study of its trials.

Optuna proposes points, the same ones for the same results. All trials have the same
seeds; the winner is run again, by seeds that no trial was chosen by.

The study's scenario has the points as zipped lists, each with its number of replicates.
Proposals follow from the seed and from results; so an interrupted search repeats its
steps, and finds finished trials in its folder.
"""

import shutil
import weakref
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..files.study import Study, load
from ..files.study.disk import locked
from ..files.study.manifest import NAME
from ..parts.errors import StudyError, check_type
from ..parts.extras import extra
from ..parts.lazy import Late
from ..scenario import tuning
from ..scenario.grid import Span, short
from ..scenario.reading import validated
from ..scenario.scenario import Scenario
from ..scenario.study import VariantError, expand
from ..scenario.tuning import Searched, Tune
from . import executors, planning, running
from .planning import OPEN
from .progress import Progress, Stages, bar

if TYPE_CHECKING:
    from ...analysis import racing
else:
    racing = Late("...analysis.racing", __package__)  # pandas, a second

AT_RANDOM = 10
"""Trials before the search learns from results."""
TOGETHER = 5
"""Trials that are proposed at a time after that."""


class Tuned(NamedTuple):
    """A search that has ended.

    Attributes:
        study: Study of its trials.
        tried: Number of different points.
        runs: Number of runs.
    """

    study: Study
    tried: int
    runs: int


def tune(
    scenario: running.Source,
    over: Mapping[str, object] | None = None,
    folder: str | Path | None = None,
    *,
    objective: str | None = None,
    trials: int | None = None,
    variant: str | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
    checkpoint_s: float | None = running.CHECKPOINT_S,
) -> Tuned:
    """Searches the best values of some entries of a scenario.

    Args:
        scenario: Scenario to tune; of its claims none are kept.
        over: Dotted keys and where their values are searched: `{"from": 0.001, "to": 1,
            "scale": "log"}`, or a list to choose from. Added to those of the
            scenario's own `tune`, and so are the next two.
        folder: Folder for the study, or of a search to continue; by default a
            temporary one, which lives as long as the study.
        objective: Metric, such as `"test_loss"` or `"test_loss@200s"`.
        trials: Number of points that are tried; by default 30.
        variant: Variant that is tuned, if the scenario has several.
        jobs: Number of processes, as in `simulate`.
        progress: Called with how far the search is, as in `simulate`.
        checkpoint_s: Real seconds, as in `simulate`.

    Returns:
        The search; `stalesim.analysis.racing.best` returns its result.

    Raises:
        UserError: Optuna is not installed, something in the scenario or the folder is
            wrong, or a run failed.
    """
    rule = 'a mapping such as {"algorithm.learning_rate": {"from": 0.01, "to": 1}}'
    check_type("over", over, Mapping | None, rule)
    config = planned(scenario, over, objective, trials, variant)
    path = running.new_folder(folder)
    workers = partial(executors.chosen, jobs=planning.processes(jobs))
    execute = partial(
        running.run, path=path, workers=workers, checkpoint_s=checkpoint_s
    )
    progress = progress or bar(config.name)
    with locked(path):
        found = TrialSearch(config, path, execute, progress).end()
    if folder is None:
        weakref.finalize(found.study, shutil.rmtree, path, ignore_errors=True)
    return found


def planned(
    scenario: running.Source,
    over: Mapping[str, object] | None = None,
    objective: str | None = None,
    trials: int | None = None,
    variant: str | None = None,
) -> Scenario:
    """Returns the scenario of a search before its first trial, as `tune` has it.

    Raises:
        UserError: It cannot be tuned, or ends of the search space are no values.
    """
    config = running.scenario_from(scenario)
    tree = config.model_dump(mode="json")
    given = {"objective": objective, "trials": trials}
    plan = dict(tree.get("tune") or {})
    plan["over"] = {**plan.get("over", {}), **(over or {})}
    plan |= {key: value for key, value in given.items() if value is not None}
    if not plan["over"]:
        raise StudyError(
            f"{config.name}: must define what to tune; give --over KEY=FROM:TO, or "
            "tune.over in the scenario"
        )
    names = list(config.variants)
    if variant is not None and variant not in names:
        known = ", ".join(names) or "none"
        raise StudyError(
            f"--variant must be a variant of the scenario, got {variant!r}; known are "
            f"{known}"
        )
    if variant is None and len(names) > 1:
        raise StudyError(
            f"{config.name}: must be tuned one variant at a time, but has "
            f"{', '.join(names)}; choose one by --variant"
        )
    kept = names if variant is None else [variant]
    tree["variants"] = {name: tree["variants"][name] for name in kept}
    swept = [tree["sweep"], *(v.get("sweep") for v in tree["variants"].values())]
    known = tuning.trials(tree["sweep"])
    if known is None or any(swept[1:]):
        raise StudyError(
            f"{config.name}: must have no sweep to be tuned; remove it by -s sweep=null"
        )
    config = validated({**tree, "claims": [], "looks": [], "tune": plan, "sweep": {}})
    _check_corners(config)
    return config


def _check_corners(config: Scenario) -> None:
    """Refuses a search some of whose values no scenario can have."""
    assert config.tune is not None
    values = {key: _some(searched) for key, searched in config.tune.over.items()}
    usual = {key: some[0] for key, some in values.items()}
    for key, some in values.items():
        for value in some:
            point = tuning.name({**usual, key: value})
            tried = config.model_copy(
                update={"sweep": tuning.sweep({point: 1}), "replicates": 1}
            )
            try:
                expand(tried)
            except VariantError as error:
                told = str(error).replace("sweep of", "tune.over of", 1)
                raise VariantError(told, ("tune", "over", key)) from None


def _some(searched: Searched) -> list[object]:
    """Returns the ends of what is searched, or the whole list."""
    if isinstance(searched, tuple):
        return list(searched)
    ends = searched.from_, searched.to
    return [round(end) for end in ends] if searched.whole else list(ends)


class TrialSearch:
    """A search under way, in its locked folder."""

    def __init__(
        self,
        config: Scenario,
        path: Path,
        execute: Callable[..., Study],
        report: Progress,
    ) -> None:
        assert config.tune is not None
        self._config, self._path, self._execute = config, path, execute
        self._tune = config.tune
        self._whole = Stages(report, config.replicates * (config.tune.trials + 1))
        self._trials: dict[str, int] = {}
        self._study: Study | None = None
        if (path / NAME).exists():
            self._study = load(path)
            self._of_folder(self._study)  # refuses another study

    def _of_folder(self, study: Study) -> dict[str, int]:
        entries = dict(study.manifest.get("scenario", {}))
        known = tuning.trials(entries.pop("sweep", {}))
        mine = self._config.model_dump(mode="json")
        del mine["sweep"]
        if known is None or entries != mine:
            raise StudyError(
                f"{self._path}: must be new, or hold this very search, but holds "
                f"another study; choose another folder by --out"
            )
        return known

    def end(self) -> Tuned:
        """Searches, and returns the result."""
        proposals = Proposals(self._tune, self._config.seed)
        asked, replicates = 0, self._config.replicates
        for number in waves(self._tune.trials):
            names = proposals.ask(number)
            new = [name for name in names if name not in self._trials]
            ends = (part / (self._tune.trials + 1) for part in (asked, asked + number))
            self._extend(dict.fromkeys(new, replicates), ends)
            scores = self._scores()
            proposals.tell({name: _mean(mine) for name, mine in scores.items()})
            asked += number
        at = (asked / (asked + 1), 1.0)
        study = self._extend({self._best(): 2 * replicates}, at)
        if {*(known := self._of_folder(study))} - {*self._trials}:
            raise self._other_way(known)
        return Tuned(study, len(self._trials), len(study.manifest["runs"]))

    def _extend(self, more: Mapping[str, int], at: Iterable[float]) -> Study:
        """Returns the study with trials, or more replicates of them.

        What a former session of the search has run is taken over.
        """
        self._trials.update(more)
        wanted = self._of_folder(self._study) if self._study else {}
        if (study := self._study) is not None and self._has(more):
            return study
        if {*wanted} - {*self._trials}:
            raise self._other_way(wanted)
        wanted |= {k: max(n, wanted.get(k, 0)) for k, n in self._trials.items()}
        stage = self._config.model_copy(update={"sweep": tuning.sweep(wanted)})
        report = self._whole.stage(*at, runs=sum(wanted.values()))
        study = self._study = self._execute(stage, progress=report)
        return study

    def _has(self, trials: Mapping[str, int]) -> bool:
        assert self._study is not None
        ended: dict[str, int] = {}
        for run in self._study.manifest["runs"]:
            if run["stop"] not in OPEN:
                name = tuning.name(run["parameters"])
                ended[name] = ended.get(name, 0) + 1
        return all(ended.get(name, 0) >= number for name, number in trials.items())

    def _other_way(self, known: Mapping[str, int]) -> StudyError:
        other = next(name for name in known if name not in self._trials)
        return StudyError(
            f"{self._path}: must continue as it was started, but holds the trial "
            f"{other}, which is not proposed here; install the Optuna "
            f"that it was started with, or choose another folder by --out"
        )

    def _scores(self) -> dict[str, np.ndarray]:
        """Returns the values of each trial, over those replicates that all have."""
        assert self._study is not None
        scores = racing.scores(self._study)
        return {name: scores[name][: self._config.replicates] for name in self._trials}

    def _best(self) -> str:
        scores = self._scores()
        best = min(scores, key=lambda name: racing.rank(scores[name]))
        if np.isinf(scores[best]).all():
            raise StudyError(
                f"{self._path}: every trial diverged, or never reached its target; "
                f"search other values, or lower the target"
            )
        return best


def _mean(values: np.ndarray) -> float:
    """Returns what a trial comes to: infinite if a replicate of it diverged."""
    return float(values.mean()) if np.isfinite(values).all() else np.inf


def waves(trials: int) -> list[int]:
    """Returns how many trials are proposed at a time, from the first ones on."""
    first = min(AT_RANDOM, trials)
    rest = trials - first
    more = [TOGETHER] * (rest // TOGETHER) + [rest % TOGETHER] * (rest % TOGETHER > 0)
    return [first, *more]


def library() -> Any:
    """Returns the module `optuna`.

    Raises:
        UserError: it is not installed.
    """
    return extra("optuna", "tune", "stalesim tune")


class Proposals:
    """Proposes points by Optuna's tree-structured Parzen estimator.

    Raises:
        UserError: Optuna is not installed.

    Source: Bergstra, Bardenet, Bengio and Kegl, Algorithms for hyper-parameter
    optimization (2011).
    """

    def __init__(self, tune: Tune, seed: int) -> None:
        optuna = library()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        entropy = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(b"tune"),))
        sampler = optuna.samplers.TPESampler(
            seed=int(entropy.generate_state(1, np.uint32)[0]),
            n_startup_trials=AT_RANDOM,
        )
        self._tune = tune
        self._study = optuna.create_study(direction="minimize", sampler=sampler)
        self._space = {
            key: _distribution(optuna.distributions, searched)
            for key, searched in tune.over.items()
        }
        self._asked: list[tuple[str, Any]] = []

    def ask(self, number: int) -> list[str]:
        """Returns the names of some points; several may be the same."""
        self._asked = []
        for _ in range(number):
            trial = self._study.ask(self._space)
            values = {
                key: _value(searched, trial.params[key])
                for key, searched in self._tune.over.items()
            }
            self._asked.append((tuning.name(values), trial))
        return [name for name, _ in self._asked]

    def tell(self, results: Mapping[str, float]) -> None:
        """Takes the results of the proposed points; less is better."""
        for name, trial in self._asked:
            self._study.tell(trial, results[name])


def _distribution(kinds: Any, searched: Searched) -> Any:
    if not isinstance(searched, Span):
        return kinds.CategoricalDistribution(tuple(range(len(searched))))
    low, high = sorted((searched.from_, searched.to))
    log = searched.scale == "log"
    if searched.whole:
        return kinds.IntDistribution(round(low), round(high), log=log)
    return kinds.FloatDistribution(low, high, log=log)


def _value(searched: Searched, proposed: Any) -> object:
    """Returns a value as it is run: of a list, or rounded to the digits shown."""
    if not isinstance(searched, Span):
        return searched[proposed]
    if searched.whole:
        return int(proposed)
    low, high = sorted((searched.from_, searched.to))
    return short(min(max(float(short(proposed)), low), high))
