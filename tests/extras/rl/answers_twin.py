"""A slow twin of answers: a transformer whose gradients are complex steps; no JAX.

With h = 1e-30 the imaginary part of f(theta + i h e) / h is the derivative to the last
digit, for nothing is subtracted (Squire and Trapp, 1998). Rows are read up to the token
that is asked for, not masked.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stalesim.simulator.catalogue.models.transformer.part import Transformer
from tests.extras.rl.policy_gradient_twin import picked, shares

TINY = 1e-30


def normed(x: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """Returns numbers of mean 0 and variance 1, times gains; the last axis."""
    centred = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)
    return gain[:, None] * centred / spread


def gelu(x: np.ndarray) -> np.ndarray:
    """Returns the form of GELU with tanh."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def turned(x: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Returns a matrix times each token's numbers, for each of many weights."""
    return np.einsum("qnd,qed->qne", x, matrix)


def logits(
    config: Transformer, shape: tuple[int, int], theta: np.ndarray, tokens: list[int]
) -> np.ndarray:
    """Returns the logits after each token, for each of many weights `[q, P]`.

    Args:
        config: Options of a model whose logits are tied.
        shape: Number of tokens that there are, and of a row.
        theta: Weights, perhaps complex.
        tokens: The row so far.
    """
    at, size = 0, config.width // config.heads

    def take(*shape: int) -> np.ndarray:
        nonlocal at
        at += math.prod(shape)
        return theta[:, at - math.prod(shape) : at].reshape(-1, *shape)

    wide, hidden = config.width, config.expansion * config.width
    embedding, positions = take(shape[0], wide), take(shape[1], wide)
    x = embedding[:, tokens] + positions[:, : len(tokens)]
    for _ in range(config.layers):
        inputs = normed(x, take(wide))
        query, key, value = (turned(inputs, take(wide, wide)) for _ in range(3))
        mixed = np.zeros_like(x)
        for now in range(len(tokens)):
            for head in range(config.heads):
                own = slice(head * size, (head + 1) * size)
                before = key[:, : now + 1, own]
                score = np.einsum("qe,qme->qm", query[:, now, own], before)
                share = np.exp(score / math.sqrt(size))
                share /= share.sum(axis=1, keepdims=True)
                seen = value[:, : now + 1, own]
                mixed[:, now, own] = np.einsum("qm,qme->qe", share, seen)
        x = x + turned(mixed, take(wide, wide))
        units = normed(x, take(wide))
        x = x + turned(gelu(turned(units, take(hidden, wide))), take(wide, hidden))
    found = turned(normed(x, take(wide)), embedding)
    assert at == theta.shape[1]
    return found


@dataclass
class Answers:
    """Answers to prompts of tokens, each right as a whole.

    Attributes:
        config: Options of the model.
        shape: Number of tokens that there are, and of a row.
        context: Prompt and right answer, by the prompt's number.
        uniform: Random numbers of a sample, by its prompt and place in the group.
    """

    config: Transformer
    shape: tuple[int, int]
    context: Callable[[int], tuple[list[int], list[int]]]
    uniform: Callable[[int, int], np.ndarray]

    def sample(
        self, weights: np.ndarray, prompt: int, member: int
    ) -> tuple[list[int], float]:
        row, right = self.context(prompt)
        tokens: list[int] = []
        for uniform in self.uniform(prompt, member):
            found = logits(self.config, self.shape, weights[None], row + tokens)
            tokens.append(picked(shares(found[0, -1]), float(uniform)))
        return tokens, float(tokens == right)

    def chances(
        self, weights: np.ndarray, prompt: int, tokens: list[int]
    ) -> list[float]:
        return [float(one[0]) for one in self._chances(weights[None], prompt, tokens)]

    def slopes(
        self, weights: np.ndarray, prompt: int, tokens: list[int]
    ) -> list[np.ndarray]:
        moved = weights[None] + 1j * TINY * np.eye(weights.size)
        found = self._chances(moved, prompt, tokens)
        return [np.imag(np.log(one)) / TINY for one in found]

    def _chances(
        self, theta: np.ndarray, prompt: int, tokens: list[int]
    ) -> list[np.ndarray]:
        """Returns each token's chance, for each of many weights."""
        row, _ = self.context(prompt)
        found = []
        for place, token in enumerate(tokens):
            last = logits(self.config, self.shape, theta, row + tokens[:place])[:, -1]
            grown = np.exp(last)
            found.append(grown[:, token] / grown.sum(axis=1))
        return found
