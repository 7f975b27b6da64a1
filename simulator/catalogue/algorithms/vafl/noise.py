"""VAFL's noise: on embeddings that are uploaded, and inside the parties' networks."""

import math
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Key

from ....engine.kernel import norms_of
from ....files.timeline import NO_SAMPLE
from ....privacy import gdp
from ....privacy.noise import Words, normals, threefry, uniforms, words_of
from ....problem.models.base import Embedding
from ....problem.models.flat import BLOCK
from ....problem.models.party import embedded, hidden_shapes
from .part import Perturbation

AT_START = -1
"""Job of the uploads that fill the store before the first row, at age 1 (V-09)."""
LAYERS = 2**32 - 1
"""Second word of the counters of layers' keys; no pair of columns has it."""


class EmbeddingNoise(eqx.Module):
    """Noise on embeddings, fresh at every upload (equations 10-11, V-17).

    Noise on the embedding itself is Gaussian; its standard deviation is
    `fixed + relative * |w|`, where `|w|` is the Frobenius norm of the uploading party's
    weights, an upper bound of the norm in appendix F.

    Attributes:
        fixed: Standard deviation that does not depend on weights.
        relative: Factor of the weights' norm.
        hidden: Scale of the noise inside each hidden layer; None without any. Of the
            law `uniform` half of its width, of `std` its standard deviation.
        law: Law of the noise inside hidden layers.
    """

    fixed: Float[Array, ""]
    relative: Float[Array, ""]
    hidden: Float[Array, " L"] | None = None
    law: Literal["uniform", "std"] = eqx.field(static=True, default="std")

    def std(self, weights: Float[Array, "W ..."]) -> Float[Array, " W"]:
        """Returns the standard deviation of uploads with these weights."""
        return self.fixed + self.relative * norms_of(weights)


def noise_of(
    config: Perturbation | None, ratio: float, num_hidden: int
) -> EmbeddingNoise | None:
    """Returns the noise of uploads that carry a share `ratio` of all samples."""
    # Without noise the plain program runs: adding zeros lets XLA sum in another order,
    # and the two would differ in the last bits.
    if config is None or (config.std == 0 and config.hidden is None):
        return None
    zero = jnp.asarray(0.0, float)
    if config.std is None:
        assert config.mu is not None
        assert config.releases is not None
        assert config.input_diameter is not None
        z = gdp.noise_multiplier(config.mu, config.releases, ratio, config.accountant)
        return EmbeddingNoise(zero, jnp.asarray(z * config.input_diameter, float))
    std, hidden = jnp.asarray(config.std, float), config.hidden
    if hidden is None:
        return EmbeddingNoise(std, zero)
    scales = jnp.asarray(hidden.of_layers(num_hidden), float)
    return EmbeddingNoise(std, zero, scales, hidden.law)


class Draw(NamedTuple):
    """A party's upload and its noise.

    Attributes:
        weights: Weights of its model.
        worker: the party.
        job: the job.
        samples: Samples whose embeddings are uploaded.
        std: Standard deviation of the noise on the embedding.
    """

    weights: Float[Array, "..."]
    worker: Int[Array, "*W"]
    job: Int[Array, "*W"]
    samples: Int[Array, "*W S"]
    std: Float[Array, "*W"]


def draw(
    key: Key[Array, ""],
    party: Int[Array, ""],
    job: Int[Array, ""],
    samples: Int[Array, " S"],
    width: int,
) -> Float[Array, "C S"]:
    """Returns standard normal noise keyed by (party, job, sample).

    The same triple gives the same noise wherever and whenever it is drawn, so that an
    upload need not be stored to be repeated.
    """
    dtype = jax.dtypes.canonicalize_dtype(float)
    upload = _of_upload(key, party, job)
    return normals(upload, jnp.asarray(samples), width, dtype).T


def inside(
    key: Key[Array, ""],
    noise: EmbeddingNoise,
    party: Int[Array, ""],
    job: Int[Array, ""],
    samples: Int[Array, " S"],
    shapes: tuple[tuple[int, ...], ...],
) -> tuple[Float[Array, "... S"], ...]:
    """Returns the noise of each hidden layer, keyed by (party, job, layer, sample).

    Args:
        key: Key of all noise.
        noise: Law and scales.
        party: The party.
        job: The job.
        samples: The samples.
        shapes: Shapes of each hidden layer's output for a sample.
    """
    dtype = jax.dtypes.canonicalize_dtype(float)
    upload = _of_upload(key, party, job)
    assert noise.hidden is not None
    law, found = uniforms if noise.law == "uniform" else normals, []
    for layer, shape in enumerate(shapes):
        own = threefry(upload, (jnp.uint32(layer + 1), jnp.uint32(LAYERS)))
        flat = law(own, jnp.asarray(samples), math.prod(shape), dtype)
        found.append(noise.hidden[layer] * flat.T.reshape(*shape, -1))
    return tuple(found)


def perturbed(
    embedding: Embedding,
    key: Key[Array, ""],
    noise: EmbeddingNoise,
    x: Float[Array, "S F"],
    of: Draw,
) -> Float[Array, "C S"]:
    """Returns a party's embeddings of some rows, perturbed.

    Source: VAFL, equations 10 and 11.
    """

    def embed(samples: Int[Array, " B"], x: Float[Array, "B F"]) -> Array:
        upload = of.worker, of.job, samples
        z = draw(key, *upload, embedding.num_outputs)
        layers = ()
        if noise.hidden is not None:
            layers = inside(key, noise, *upload, hidden_shapes(embedding))
        return embedded(embedding, of.weights, x, layers, of.std * z)

    num_samples = x.shape[0]
    if noise.hidden is None or num_samples <= BLOCK:
        return embed(of.samples, x)
    # Noise inside all layers of all rows at once would not fit into memory.
    spare = -num_samples % BLOCK
    ids = jnp.pad(of.samples, (0, spare), constant_values=NO_SAMPLE)
    wide = jnp.pad(x, ((0, spare), (0, 0)))
    blocks = (ids.reshape(-1, BLOCK), wide.reshape(-1, BLOCK, x.shape[1]))
    found = lax.map(lambda block: embed(*block), blocks)
    return found.swapaxes(0, 1).reshape(found.shape[1], -1)[:, :num_samples]


def _of_upload(
    key: Key[Array, ""], party: Int[Array, ""], job: Int[Array, ""]
) -> Words:
    counter = (
        jnp.asarray(party).astype(jnp.uint32),
        (jnp.asarray(job) - AT_START).astype(jnp.uint32),
    )
    return threefry(words_of(key), counter)
