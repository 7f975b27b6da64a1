"""Builds VAFL from a scenario's configuration."""

import jax.numpy as jnp

from ...capabilities import RefreshesEmbeddings
from ...learning.constants import Constants
from ...privacy import gdp
from ...setup import RunSetup
from ..base import on_device
from ..optimizers.rule import rule_of
from ..step_rules import resolve
from .kernel import VaflKernel
from .noise import EmbeddingNoise, Hidden
from .part import Perturbation, Vafl


def build(
    config: Vafl, setup: RunSetup, constants: Constants, *, table: bool = False
) -> VaflKernel:
    """Builds the algorithm of a scenario.

    With `table` it keeps one also where uploads of all samples allow snapshots (tests).
    """
    client, server = resolve(config.step_size, constants)
    if config.server_step_size is not None:
        _, server = resolve(config.server_step_size, constants)
    upload_all = config.upload != "batch"
    layers = setup.scenario.problem.model.num_layers or 1
    protocol = setup.timeline.protocol
    refreshes = isinstance(protocol, RefreshesEmbeddings)
    return VaflKernel(
        step_size=on_device(client),
        server_step_size=on_device(server),
        noise=_noise(config.perturbation, setup.upload_ratio, layers - 1),
        optimizer=rule_of(config.optimizer),
        coordinated=setup.coordinated,
        upload_all=upload_all,
        snapshots=upload_all and not table,
        current=config.upload == "current",
        query_first=config.client_order == "query_first" and not setup.coordinated,
        after=config.server_gradient == "after",
        bound=protocol.refresh_bound if refreshes else 0,
        batch=setup.shape.batch,
    )


def _noise(
    config: Perturbation | None, ratio: float, num_hidden: int
) -> EmbeddingNoise | None:
    """Returns the noise of uploads that carry a share `ratio` of all samples."""
    # Without noise the plain program runs: adding zeros lets XLA sum in another order,
    # and the two would differ in the last bits.
    if config is None or (config.std == 0 and config.hidden is None):
        return None
    hidden = None
    if config.hidden is not None:
        scales = jnp.asarray(config.hidden.of_layers(num_hidden), float)
        hidden = Hidden(**{config.hidden.law: scales})
    if config.std is not None:
        return EmbeddingNoise(
            jnp.asarray(config.std, float),
            jnp.asarray(0.0, float),
            hidden,
        )
    assert config.mu is not None
    assert config.releases is not None
    assert config.input_diameter is not None
    z = gdp.noise_multiplier(config.mu, config.releases, ratio, config.accountant)
    return EmbeddingNoise(
        jnp.asarray(0.0, float), jnp.asarray(z * config.input_diameter, float)
    )
