"""JAX's random keys of a run."""

import jax

NUMERICS = 25
"""Number of the stream of all numerics, the number of streams of the world when it was
chosen. It never changes, since all models and noise depend on it."""


def key_of(seed: int) -> jax.Array:
    """Returns the key of all numerics of a run."""
    return jax.random.fold_in(jax.random.key(seed), NUMERICS)
