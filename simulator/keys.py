"""JAX's random keys of a run."""

import jax

from simulator.streams import Purpose


def key_of(seed: int) -> jax.Array:
    """Returns the key of all numerics of a run."""
    return jax.random.fold_in(jax.random.key(seed), len(Purpose))
