"""Random crops and mirrors of images."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key


def augmented(
    key: Key[Array, ""],
    x: Float[Array, "S P"],
    *,
    image: tuple[int, int, int],
    crop: int,
    flip: bool,
) -> Float[Array, "S P"]:
    """Cuts every image out of a larger one at random, and mirrors every second one.

    Args:
        key: Key of the batch; an image's changes follow from it and from its place.
        x: Images plane by plane, row by row.
        image: Height, width and depth of an image, pixels.
        crop: Pixels of zeros on each side, >= 0. The upper left corner of what is cut
            out is drawn from all (2 crop + 1)^2 places.
        flip: Whether images are mirrored, left and right, with a chance of 1/2.

    Source: pytorch-cifar, RandomCrop with padding and RandomHorizontalFlip.
    """
    height, width, depth = image
    of_place, of_side = jax.random.split(key)
    planes = x.reshape(-1, depth, height, width)
    if crop:
        padding = ((0, 0), (0, 0), (crop, crop), (crop, crop))
        padded = jnp.pad(planes, padding)
        corners = jax.random.randint(of_place, (len(x), 2), 0, 2 * crop + 1)

        def cut(one: Array, corner: Array) -> Array:
            at = (0, corner[0], corner[1])
            return jax.lax.dynamic_slice(one, at, (depth, height, width))

        planes = jax.vmap(cut)(padded, corners)
    if flip:
        mirrored = jax.random.bernoulli(of_side, shape=(len(x), 1, 1, 1))
        planes = jnp.where(mirrored, planes[..., ::-1], planes)
    return planes.reshape(x.shape)
