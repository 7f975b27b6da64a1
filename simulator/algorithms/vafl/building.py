"""Builds VAFL from a scenario's configuration."""

import jax.numpy as jnp

from simulator.algorithms.base import Context, on_device
from simulator.algorithms.step_rules import resolve
from simulator.algorithms.vafl.kernel import Vafl
from simulator.algorithms.vafl.part import Perturbation
from simulator.algorithms.vafl.part import Vafl as VaflConfig
from simulator.algorithms.vafl.stores import Noise
from simulator.privacy import gdp


def build(config: VaflConfig, context: Context, *, table: bool = False) -> Vafl:
    """Builds the algorithm of a scenario.

    Args:
        config: of the algorithm.
        context: what else it depends on.
        table: keep a table also where uploads of all samples allow snapshots (tests).
    """
    client, server = resolve(config.step_size, context.constants)
    if config.server_step_size is not None:
        _, server = resolve(config.server_step_size, context.constants)
    upload_all = config.upload == "all"
    everything = upload_all and not context.coordinated
    ratio = 1.0 if everything else context.batch / context.num_samples
    return Vafl(
        step_size=on_device(client),
        server_step_size=on_device(server),
        noise=_noise(config.perturbation, ratio),
        coordinated=context.coordinated,
        upload_all=upload_all,
        snapshots=upload_all and not table,
        query_first=config.client_order == "query_first" and not context.coordinated,
        after=config.server_gradient == "after",
        bound=context.bound,
        batch=context.batch,
    )


def _noise(config: Perturbation | None, ratio: float) -> Noise | None:
    """Returns the noise of uploads that carry a share `ratio` of all samples."""
    # Without noise the plain program runs: adding zeros lets XLA sum in another order,
    # and the two would differ in the last bits.
    if config is None or config.std == 0:
        return None
    if config.std is not None:
        return Noise(jnp.asarray(config.std, float), jnp.asarray(0.0, float))
    assert config.mu is not None
    assert config.releases is not None
    assert config.input_diameter is not None
    z = gdp.noise_multiplier(config.mu, config.releases, ratio, config.accountant)
    return Noise(jnp.asarray(0.0, float), jnp.asarray(z * config.input_diameter, float))
