"""Builds FedSGD and FedBCD from a scenario's configuration."""

import jax.numpy as jnp

from ...learning.constants import Constants, measured
from ...learning.convex import largest_step
from ...setup import RunSetup
from ..base import on_device
from ..optimizers.rule import rule_of
from ..step_rules import resolve
from .kernel import BlockDescentKernel
from .part import BlockDescent
from .transfer import TransferDescent


def build(
    config: BlockDescent, setup: RunSetup, constants: Constants
) -> BlockDescentKernel | TransferDescent:
    """Builds the algorithm of a scenario."""
    steps = getattr(config, "local_steps", 1)
    proximal = getattr(config, "proximal", None)
    # Without it the plain program runs, bit for bit that of FedBCD.
    pull = jnp.asarray(proximal, float) if proximal else None
    step_size, _ = resolve(config.step_size, constants)
    if setup.scenario.problem.transfer is not None:
        return TransferDescent(on_device(step_size), pull, steps)
    bound = float("nan")
    smoothness = measured(constants.smoothness)
    of_parties = measured(constants.of_parties)
    if smoothness is not None and of_parties:
        bound = largest_step(steps, of_parties, smoothness)
    return BlockDescentKernel(
        step_size=on_device(step_size),
        proximal=pull,
        step_bound=jnp.asarray(bound, float),
        optimizer=rule_of(config.optimizer),
        local_steps=steps,
        frozen=getattr(config, "local_gradient", "recompute") == "frozen",
        stored=not setup.coordinated,
    )
