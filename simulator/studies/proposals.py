"""Points of a search, as Optuna proposes them: the same ones for the same results."""

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..config.extras import extra
from ..scenario import tuning
from ..scenario.grid import Span, short
from ..scenario.tuning import Tune

AT_RANDOM = 10
"""Trials before the search learns from results."""
TOGETHER = 5
"""Trials that are proposed at a time after that."""


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

    Args:
        tune: What is searched.
        seed: Seed of the study.

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
        """OnDrawn what the points that were asked for have come to; less is better."""
        for name, trial in self._asked:
            self._study.tell(trial, results[name])


def _distribution(kinds: Any, searched: Any) -> Any:
    if not isinstance(searched, Span):
        return kinds.CategoricalDistribution(tuple(range(len(searched))))
    low, high = sorted((searched.from_, searched.to))
    log = searched.scale == "log"
    if searched.whole:
        return kinds.IntDistribution(round(low), round(high), log=log)
    return kinds.FloatDistribution(low, high, log=log)


def _value(searched: Any, proposed: Any) -> Any:
    """Returns a value as it is run: of a list, or rounded to the digits shown."""
    if not isinstance(searched, Span):
        return searched[proposed]
    if searched.whole:
        return int(proposed)
    low, high = sorted((searched.from_, searched.to))
    return short(min(max(float(short(proposed)), low), high))
