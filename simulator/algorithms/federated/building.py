"""Builds the kernel of the methods of the field from a scenario's options."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...learning.constants import Constants
from ...setup import RunSetup
from .. import client_work
from ..base import on_device
from ..optimizers.rule import rule_of
from ..step_rules import resolve
from .averaging import FedAsync, FedAvg, FedBuff
from .kernel import FederatedKernel
from .part import Federated as Config
from .part import Sgd
from .weights import staleness_weight


def _expected(config: Config, setup: RunSetup) -> Float[Array, ""] | None:
    found = getattr(config, "divisor", None)
    if found == "expected":
        scenario = setup.scenario
        found = scenario.protocol.expected_batch(
            scenario.clients, setup.shape.num_clients, setup.run.seed
        )
    return None if found is None else jnp.asarray(found, float)


def _shares(config: Config, setup: RunSetup) -> Float[Array, " K"] | None:
    """Returns what clients count by, where that is their number of samples."""
    if getattr(config, "weighting", "equal") == "equal":
        return None
    sizes = jnp.asarray(setup.shares.num_samples, float)
    return sizes / sizes.mean()


def build(config: Config, setup: RunSetup, constants: Constants) -> FederatedKernel:
    """Builds the algorithm of a scenario."""
    of_client, _ = resolve(config.step_size, constants)
    step_size = local = of_client
    weight = compensation = optimizer = mixing = proximal = threshold = None
    if isinstance(config, Sgd):
        weight, compensation = config.weight, config.compensation
        optimizer = config.optimizer
        if config.local_step_size is not None:
            local, _ = resolve(config.local_step_size, constants)
    elif isinstance(config, FedAsync):
        weight = config.weight
        mixing = jnp.asarray(config.mixing, float)
        proximal = jnp.asarray(config.proximal, float)
    elif isinstance(config, FedBuff | FedAvg):
        optimizer = config.optimizer
        step_size, _ = resolve(config.server_step_size, constants)
        if isinstance(config, FedBuff):
            weight = config.weight
            if config.staleness_threshold is not None:
                threshold = jnp.asarray(config.staleness_threshold, float)
        elif config.proximal:
            proximal = jnp.asarray(config.proximal, float)
    strength, chosen = None, config.local_optimizer
    if compensation is not None:
        strength = jnp.asarray([compensation.strength, compensation.decay], float)
    return FederatedKernel(
        step_size=on_device(step_size),
        local_step_size=on_device(local),
        mixing=mixing,
        proximal=proximal,
        shares=_shares(config, setup),
        weight=staleness_weight(weight, setup, constants),
        divisor=_expected(config, setup),
        threshold=threshold,
        strength=strength,
        privatiser=client_work.privatiser(config.mechanism, setup),
        local_steps=setup.sampler.steps,
        uneven=setup.sampler.own_steps is not None,
        moves=isinstance(config, FedBuff | FedAvg),
        buffers=setup.scenario.protocol.gathers,
        compensation=compensation,
        optimizer=rule_of(optimizer),
        local_optimizer=rule_of(chosen, "algorithm.local_optimizer"),
        keeps_local=chosen is not None and chosen.state == "kept",
        num_registers=setup.timeline.num_registers,
    )
