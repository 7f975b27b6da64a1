"""Selections that prefer clients by the server's knowledge of them."""

from abc import abstractmethod
from collections.abc import Callable
from math import log
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field

from ..parts.expressions import down
from .answers import Answers, Asking
from .clients import Selection
from .cycle import Then
from .selection import Pool
from .streams import Purpose

if TYPE_CHECKING:
    from .world import World


Choose = Callable[[int, float], list[int]]
"""Returns clients who are free: a number of them, or fewer, at a time of the clock."""


class Preference(Asking):
    """Which clients are selected, of those who are free: its options."""

    @abstractmethod
    def make(self, pool: "PreferringPool") -> Choose:
        """Returns the chooser of one run.

        Args:
            pool: The clients, and the data on them.
        """


class PreferringPool(Pool):
    """The clients who wait to be selected; a preference chooses among them.

    Args:
        config: Number of clients in flight, the preference, and how others are chosen.
        world: World of the clients; it has the training's answers.
    """

    def __init__(self, config: Selection, world: "World") -> None:
        super().__init__(config, world)
        assert config.prefer is not None
        self._position = 0
        self._choose = config.prefer.make(self)

    @property
    def answers(self) -> Answers:
        """Data on the clients, if the preference needs them."""
        answers = self.world.answers
        assert answers is not None
        return answers

    @property
    def samples(self) -> Float[np.ndarray, " K"]:
        """Samples of a job of each client."""
        samples = np.asarray(self.world.workload.samples_per_job, float)
        return np.broadcast_to(samples, self.world.num_clients)

    def uniforms(self, number: int) -> Float[np.ndarray, " N"]:
        """Returns the next numbers in (0, 1) of the run's selection."""
        first, self._position = self._position, self._position + -(-number // 4) * 4
        return self.world.streams.uniforms(Purpose.SELECT, 1, first, number)

    def draw(self, number: int, now: float) -> list[int]:
        """Returns different free clients, drawn by the scenario's chances.

        All who are free if these are fewer.
        """
        found: list[int] = []
        while len(found) < number and (client := super().take(now)) is not None:
            found.append(client)
        for client in found:
            self.give_back(client)
        return found

    def choose(self, number: int, now: float) -> list[int]:
        found = self._choose(number, now) if number > 0 else []
        for client in found:
            self.hold(client)
        return found

    def take(self, now: float) -> int | None:
        return next(iter(self.choose(1, now)), None)

    def ready(self, then: Then, argument: int) -> None:
        """Calls a function as soon as the preference's data are there."""
        if self.world.answers is None:
            then(argument)
        else:
            self.world.ask(then, argument)


class PowerOfChoice(Preference):
    """Of some candidates, those whose last loss was largest.

    Candidates are drawn without replacement by the selection's probabilities (`by`:
    shares of the data in the paper); at least as many as the rule chooses. A client
    that has not worked yet counts as the largest loss; of equal losses the one drawn
    first is taken.

    Source: Cho, Wang and Joshi, Client Selection in Federated Learning: Convergence
    Analysis and Power-of-Choice Selection Strategies (2020), the variant rpow-d, which
    takes the losses of clients' last jobs and sends nothing for it.
    """

    kind: Literal["power_of_choice"] = "power_of_choice"
    asks: ClassVar[tuple[str, ...]] = ("losses",)
    candidates: Annotated[int, Field(ge=2)]
    """d, of which the selection's number, or one in the place of another, is taken."""

    def make(self, pool: PreferringPool) -> Choose:
        def choose(number: int, now: float) -> list[int]:
            drawn = pool.draw(max(self.candidates, number), now)
            losses = pool.answers.losses[drawn]
            losses[np.isnan(losses)] = np.inf
            first = np.argsort(-losses, kind="stable")[:number]
            return [drawn[place] for place in first]

        return choose


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
    """a, for longer jobs."""
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
