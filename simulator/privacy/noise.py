"""Keyed noise: the same key and counters give the same numbers, anywhere.

Threefry-2x32 as one unrolled elementwise expression. `jax.random` folds keys one after
the other in loops, which costs 0.3 ms for a few hundred draws inside a compiled loop on
CPU; this costs some 10 microseconds.

Source: Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3 (2011).
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, UInt32

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
Words = tuple[UInt32[Array, "*s"], UInt32[Array, "*s"]]
"""Two 32-bit words."""
Stretched = tuple[UInt32[Array, "*#s"], UInt32[Array, "*#s"]]
"""Two 32-bit words, broadcast against others."""


def threefry(key: Stretched, counter: Stretched) -> Words:
    """Returns 64 pseudorandom bits for each counter under a key (20 rounds)."""
    schedule = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(PARITY))
    x, y = counter[0] + schedule[0], counter[1] + schedule[1]
    for block in range(5):
        for rotation in ROTATIONS[block % 2]:
            x = x + y
            y = (y << rotation) | (y >> (32 - rotation))
            y = x ^ y
        x = x + schedule[(block + 1) % 3]
        y = y + schedule[(block + 2) % 3] + jnp.uint32(block + 1)
    return x, y


def words_of(key: Key[Array, ""]) -> Words:
    """Returns the two words of a `jax.random` key."""
    data = jax.random.key_data(key)
    return data[0], data[1]


def normals(
    key: Stretched, rows: Int[Array, "*s"], num_columns: int, dtype: jnp.dtype
) -> Float[Array, "*s num_columns"]:
    """Returns independent standard normal numbers for each row, keyed by its number."""
    u, v = _pairs(key, rows, num_columns, dtype)
    # Box and Muller; the half keeps the logarithm finite.
    radius = jnp.sqrt(-2 * jnp.log(jnp.minimum(u, 1)))
    angle = 2 * jnp.pi * v
    return _laid(radius * jnp.cos(angle), radius * jnp.sin(angle), num_columns)


def uniforms(
    key: Stretched, rows: Int[Array, "*s"], num_columns: int, dtype: jnp.dtype
) -> Float[Array, "*s num_columns"]:
    """Returns independent numbers between -1 and 1 for each row, as `normals` does."""
    u, v = _pairs(key, rows, num_columns, dtype)
    return _laid(2 * u - 1, 2 * v - 1, num_columns)


def _pairs(
    key: Stretched, rows: Int[Array, "*s"], num_columns: int, dtype: jnp.dtype
) -> tuple[Float[Array, "*s pairs"], Float[Array, "*s pairs"]]:
    """Returns two uniform numbers in (0, 1] for each pair of columns."""
    pairs = (num_columns + 1) // 2
    row = rows.astype(jnp.uint32)[..., None]
    pair = jnp.arange(pairs, dtype=jnp.uint32)
    wide = [jnp.expand_dims(k, (*range(rows.ndim - k.ndim), -1)) for k in key]
    bits = threefry(
        (wide[0], wide[1]), (row, jnp.broadcast_to(pair, (*rows.shape, pairs)))
    )
    u, v = ((b.astype(dtype) + 0.5) * 2.0**-32 for b in bits)
    return u, v


def _laid(
    first: Float[Array, "*s pairs"], second: Float[Array, "*s pairs"], num_columns: int
) -> Float[Array, "*s num_columns"]:
    both = jnp.stack([first, second], axis=-1)
    return both.reshape(*first.shape[:-1], -1)[..., :num_columns]
