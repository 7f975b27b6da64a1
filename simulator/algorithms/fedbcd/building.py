"""Builds FedSGD and FedBCD from a scenario's configuration."""

import jax.numpy as jnp

from simulator.algorithms.base import Context, on_device
from simulator.algorithms.fedbcd.kernel import BlockDescent
from simulator.algorithms.fedbcd.part import BlockDescent as Config
from simulator.algorithms.fedbcd.transfer import TransferDescent
from simulator.algorithms.step_rules import measured, resolve
from simulator.problems.convex import largest_step


def build(config: Config, context: Context) -> BlockDescent | TransferDescent:
    """Builds the algorithm of a scenario.

    Args:
        config: of the algorithm.
        context: what else it depends on.
    """
    steps = getattr(config, "local_steps", 1)
    proximal = getattr(config, "proximal", None)
    # Without it the plain program runs, bit for bit that of FedBCD.
    pull = jnp.asarray(proximal, float) if proximal else None
    known = context.constants
    step_size, _ = resolve(config.step_size, known)
    if context.transfers:
        return TransferDescent(on_device(step_size), pull, steps)
    bound = float("nan")
    smoothness, of_parties = measured(known.smoothness), measured(known.of_parties)
    if smoothness is not None and of_parties:
        bound = largest_step(steps, of_parties, smoothness)
    return BlockDescent(
        step_size=on_device(step_size),
        proximal=pull,
        step_bound=jnp.asarray(bound, float),
        local_steps=steps,
        frozen=getattr(config, "local_gradient", "recompute") == "frozen",
        stored=not context.coordinated,
    )
