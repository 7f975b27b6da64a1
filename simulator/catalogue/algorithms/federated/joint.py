"""The work of a row whose workers have read the same version: one gradient of all.

A weighted sum of gradients at one point is the gradient of the weighted sum of their
losses, whose products are larger and fewer. So it is computed where no stage needs
single messages. Each worker's loss is still computed.
"""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ....engine.client_work import gathered
from ....files.timeline import NO_SAMPLE
from ....problem.horizontal import HorizontalProblem
from .abilities import TakesSums
from .clients import LocalWork

if TYPE_CHECKING:
    from .kernel import Chain

BLOCK = 64
"""Samples of a product, at most, unless one worker has more. With more, gathered
samples or an unfolded convolution leave the cache before they are used
(evidence/pages/speed.md, "One product for a round")."""


def possible(chain: "Chain", problem: HorizontalProblem) -> bool:
    """Says whether a chain needs no more of messages than their weighted sum.

    Args:
        chain: Chain of a run.
        problem: Its problem, whose rows of a batch are independent.
    """
    work, last = chain.work, chain.aggregation or chain.server
    others = (*chain.attacks, *chain.received, last)
    alone = chain.reads or chain.sent
    own_steps = type(work).__call__ is LocalWork.__call__
    plain = isinstance(work, LocalWork) and own_steps and work.is_plain
    one_gradient = plain and chain.local_steps == 1
    by_batch = problem.takes_key or problem.model.num_statistics > 0
    sums = all(isinstance(s, TakesSums) and s.takes_sums for s in others)
    return one_gradient and not alone and sums and not by_batch


def gradient(
    problem: HorizontalProblem,
    weights: Float[Array, "..."],
    samples: Int[Array, "W S"],
    factors: Float[Array, " W"],
) -> tuple[Float[Array, " W"], Float[Array, "..."]]:
    """Returns each worker's loss, and the weighted sum of their gradients.

    Each gradient is that of `client_work.gradient_of`, of one batch and with that of
    the regulariser.

    Args:
        problem: The problem.
        weights: Weights that all have read, as wide as registers.
        samples: Samples of each worker, padded with `NO_SAMPLE`.
        factors: Factor of its gradient, 0 for padding.
    """
    num_workers, width = samples.shape
    size = -(-num_workers // -(-num_workers * width // BLOCK))  # workers of a block
    blocks = -(-num_workers // size)
    padding = blocks * size - num_workers
    samples = jnp.pad(samples, ((0, padding), (0, 0)), constant_values=NO_SAMPLE)
    samples = samples.reshape(blocks, size * width)
    shares = jnp.pad(factors, (0, padding)).reshape(blocks, size)

    def of_block(number: Int[Array, ""]) -> tuple[Array, Array]:
        x, y, present = gathered(problem, samples[number])

        def weighted(weights: Array) -> tuple[Array, Array]:
            losses = problem.batch_losses(weights, x, y, present, size)
            return jnp.sum(shares[number] * losses), losses

        total, losses = jax.grad(weighted, has_aux=True)(weights)
        return total, losses

    def add(number: Int[Array, ""], carried: tuple[Array, Array]) -> tuple:
        total, losses = carried
        own, of_workers = of_block(number)
        return total + own, losses.at[number].set(of_workers)

    if blocks == 1:
        total, losses = of_block(jnp.int32(0))
    else:
        none = jnp.zeros_like(weights), jnp.zeros_like(shares)
        total, losses = jax.lax.fori_loop(0, blocks, add, none)
    own = factors.sum() * problem.penalised(problem.narrowed(weights))
    return losses.reshape(-1)[:num_workers], problem.narrowed(total) + own
