"""Random numbers of a world of samples: keyed, so that policies are compared in pairs.

The length of a sample is keyed by its prompt and its place in the group, and by its
attempt where attempts are drawn; it is the same under all policies, whichever slot
makes it and whenever.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from ....world.laws.base import Draws, DurationSampler, Law, Population
from ....world.streams import Purpose, Streams
from .options import RolloutOptions

BLOCK = 4096
"""Lengths that are drawn at once."""
FEW = 64
"""Steps and loads that are drawn at once."""


class RolloutDraws:
    """All random numbers of a run."""

    def __init__(self, world: RolloutOptions, seed: int) -> None:
        self._streams = Streams(seed)
        self._group = world.generation.group
        self._most = world.generation.most_tokens
        generation = world.generation
        self._tokens = self._made(generation.tokens, "generation.tokens")
        self._difficulty = None
        if generation.difficulty is not None:
            self._difficulty = self._made(generation.difficulty, "difficulty")
        self._lengths: list[float] = []
        trainer, weights = world.trainer, world.weights
        step = self._made(trainer.step, "trainer.step")
        self._step = self._successive(step, Purpose.TRAIN)
        self._per_token, self._machines = trainer.seconds_per_token, trainer.machines
        load = self._made(weights.seconds, "weights.seconds")
        self.load = self._successive(load, Purpose.LOAD)

    def length(self, prompt: int, member: int, attempt: int) -> float:
        """Returns the tokens of a sample."""
        place = prompt * self._group + member
        if attempt:
            return float(self._drawn(np.array([place]), attempt)[0])
        while place >= len(self._lengths):
            first = len(self._lengths)
            more = self._drawn(np.arange(first, first + BLOCK), 0)
            self._lengths.extend(more.tolist())
        return self._lengths[place]

    def lengths(self, n: int) -> Float[np.ndarray, " n"]:
        """Returns the tokens of the first `n` samples, at their first attempts."""
        return self._drawn(np.arange(n), 0)

    def step(self, number: int, tokens: float) -> float:
        """Returns the seconds of a step, from 0, on `tokens` tokens."""
        return (self._step(number) + self._per_token * tokens) / self._machines

    def _drawn(
        self, place: Int[np.ndarray, " n"], attempt: int
    ) -> Float[np.ndarray, " n"]:
        uniform = self._streams.scattered(Purpose.TOKENS, 0, place, attempt)
        tokens = self._tokens.draw(Draws(uniform, 0, place), None)
        if self._difficulty is not None:
            prompt = place // self._group
            chance = self._streams.scattered(Purpose.DIFFICULTY, 0, prompt)
            tokens = tokens * self._difficulty.draw(Draws(chance, 0, prompt), None)
        return tokens if self._most is None else np.minimum(tokens, self._most)

    def _made(self, law: Law, stage: str) -> DurationSampler:
        return law.make(Population(1, self._streams, stage=stage))

    def _successive(
        self, sampler: DurationSampler, purpose: Purpose
    ) -> Callable[[int], float]:
        """Returns the durations of a stage, by their numbers from 0."""
        blocks: dict[int, list[float]] = {}

        def drawn(number: int) -> float:
            block, place = divmod(number, FEW)
            if block not in blocks:
                first = block * FEW
                uniform = self._streams.uniforms(purpose, 0, first, FEW)
                blocks[block] = sampler.draw(Draws(uniform, 0, first), None).tolist()
            return blocks[block][place]

        return drawn
