"""Oort: clients by what their samples are worth and how long they take."""

from math import log
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field

from ...config.expressions import down
from .base import Choose, Preference, PreferringPool

Share = Annotated[float, Field(ge=0, le=1)]
SMALLEST = 1e-4
"""Least range of utilities, as the authors' code has it."""


class Oort(Preference):
    """By utility, a share of them explored.

    The utility of client i, whose last job took t_i seconds and was given out at the
    L_i-th of R choices so far, is

        ((min(U_i, c) - l) / (max U - l) + sqrt(0.1 ln R / L_i)) min(1, T / t_i)^a

    with a the penalty, U_i = samples of its job times their mean loss, c the clip
    quantile of U, and l = 0.999 min U. `cut_off` times the least utility that would be
    chosen is enough to be a candidate; candidates are drawn without replacement by
    their utilities. A share epsilon, falling from choice to choice, is explored:
    clients that have not worked yet, drawn by the selection's chances.

    Source: Lai et al., Oort: Efficient Federated Learning via Guided Participant
    Selection (2021), Algorithm 1, by its authors' code (FedScale, `getTopK`). Other
    than there, U has the mean loss of a job for the root of the mean square, T is fixed
    (no pacer), clients that have not worked are not ranked by speed, which is not known
    yet, none is blacklisted, and a fraction of a client is explored by chance.
    """

    kind: Literal["oort"] = "oort"
    asks: ClassVar[tuple[str, ...]] = ("losses",)
    seconds: Annotated[float, Field(gt=0)] | None = None
    """T, virtual seconds from read to arrival that are not too long; by default any
    are."""
    penalty: Annotated[float, Field(ge=0)] = 2.0
    """a, of those that are longer."""
    exploration: Share = 0.9
    """epsilon before the first choice."""
    decay: Share = 0.98
    """Factor of epsilon at each choice."""
    least: Share = 0.2
    """Smallest epsilon."""
    clip: Share = 0.95
    """Quantile of U beyond which it is cut."""
    cut_off: Share = 0.95
    """Part of the least utility to be chosen that makes a candidate."""

    def make(self, pool: PreferringPool) -> Choose:
        """Returns what chooses in one run."""
        return _Choosing(self, pool).choose


class _Choosing:
    def __init__(self, config: Oort, pool: PreferringPool) -> None:
        self._config, self._pool = config, pool
        self._choices, self._epsilon = 0, config.exploration
        self._given = np.ones(pool.samples.size, int)  # choice that took each client

    def choose(self, number: int, now: float) -> list[int]:
        config, pool = self._config, self._pool
        self._choices += 1
        self._epsilon = max(self._epsilon * config.decay, config.least)
        free = np.array(pool.free(now), int)
        losses = pool.answers.losses[free]
        tried = free[np.isfinite(losses)]
        new = free.size - tried.size
        (chance,) = pool.uniforms(1)
        explored = min(int(number * self._epsilon + chance), new)
        exploited = min(number - explored, tried.size)
        found = self._by_utility(tried, exploited).tolist() if exploited else []
        explored = min(number - exploited, new)
        if explored:
            for client in tried:
                pool.hold(client)
            found += pool.draw(explored, now)
            for client in tried:
                pool.give_back(client)
        self._given[found] = self._choices
        return found

    def _by_utility(
        self, tried: Int[np.ndarray, " N"], number: int
    ) -> Int[np.ndarray, " M"]:
        """Draws some clients by their utilities, without replacement."""
        utility = self._utilities(tried)
        least = np.sort(utility)[-number] * self._config.cut_off
        candidates, weights = tried[utility >= least], utility[utility >= least]
        # The largest of ln(u) / w are drawn as if one after the other by w.
        keys = np.log(self._pool.uniforms(candidates.size)) / np.maximum(weights, 1e-12)
        return candidates[np.argsort(-keys, kind="stable")[:number]]

    def _utilities(self, tried: Int[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
        config, answers = self._config, self._pool.answers
        worth = self._pool.samples[tried] * answers.losses[tried]
        place = min(down(worth.size * config.clip), worth.size - 1)
        clip, low = np.sort(worth)[place], 0.999 * worth.min()
        found = (np.minimum(worth, clip) - low) / max(worth.max() - low, SMALLEST)
        found += np.sqrt(0.1 * log(self._choices) / self._given[tried])
        if config.seconds is not None:
            # A job that was not applied yet has a loss, but no end.
            took = np.nan_to_num(answers.seconds[tried])
            late = took > config.seconds
            found[late] *= (config.seconds / took[late]) ** config.penalty
        return found
