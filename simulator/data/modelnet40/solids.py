"""Forty kinds of solids as clouds of points, and their depth as seen from around."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, UInt8

NUM_POINTS = 1_200
"""Points of a surface."""
VIEWS = 12
ELEVATION = np.pi / 6
"""Of the camera, which looks down at the object: 30 degrees."""
REACH = 1.5
"""Half of what an image shows, in units of the solids."""
FAR, NEAR = 60.0, 255.0
"""Grey of the farthest and of the nearest point; the background is 0."""

Points = Float64[np.ndarray, "P 3"]


class Solid(NamedTuple):
    """A kind of solids.

    Attributes:
        form: 0 superquadric, 1 prism, 2 torus, 3 a union of two of them.
        numbers: Exponents of a superquadric, sides and taper of a prism, thickness of a
            torus; of a union those of its first solid.
        scale: Stretching along the three axes.
        other: Second solid of a union, None of any other.
        offset: Where the second one stands.
    """

    form: int
    numbers: tuple[float, float]
    scale: tuple[float, float, float]
    other: "Solid | None" = None
    offset: float = 0.0


def kinds(draw: np.random.Generator, count: int) -> list[Solid]:
    """Returns kinds of solids, forms in turn, with numbers that are drawn."""
    return [_drawn(draw, number % 4) for number in range(count)]


def _drawn(draw: np.random.Generator, form: int) -> Solid:
    low, high = draw.uniform(0.3, 0.8), draw.uniform(0.8, 1.0)
    scale = tuple(draw.permutation([low, high, draw.uniform(0.5, 1.0)]).tolist())
    if form == 3:
        first, second = (_drawn(draw, int(draw.integers(3))) for _ in range(2))
        return first._replace(form=3 + first.form, other=second, offset=0.7)
    numbers = {
        0: (draw.uniform(0.2, 2.5), draw.uniform(0.2, 2.5)),
        1: (float(draw.integers(3, 7)), draw.uniform(0.2, 1.0)),
        2: (draw.uniform(0.2, 0.5), 0.0),
    }[form]
    return Solid(form, numbers, scale)


def surface(draw: np.random.Generator, solid: Solid, spread: float) -> Points:
    """Returns points of an object: a solid of its kind, stretched by chance."""
    if solid.other is not None:
        half = surface(draw, solid._replace(form=solid.form - 3, other=None), spread)
        rest = surface(draw, solid.other, spread)
        rest = 0.6 * rest + [0.0, 0.0, solid.offset]
        both = np.concatenate([half[::2], rest[::2]])
        return both - [0.0, 0.0, solid.offset / 2]
    u, v = draw.uniform(-np.pi, np.pi, (2, NUM_POINTS))
    first, second = solid.numbers
    if solid.form == 0:
        v = v / 2
        around = _power(np.cos(v), first)
        points = np.stack(
            [
                around * _power(np.cos(u), second),
                around * _power(np.sin(u), second),
                _power(np.sin(v), first),
            ],
            axis=1,
        )
    elif solid.form == 1:
        height = v / np.pi
        # Distance of a regular polygon's edge from its centre, towards the angle u.
        part = 2 * np.pi / first
        radius = np.cos(part / 2) / np.cos(np.mod(u, part) - part / 2)
        lid = draw.random(NUM_POINTS) < 0.25
        height = np.where(lid, np.sign(height), height)
        radius = radius * np.where(lid, np.sqrt(draw.random(NUM_POINTS)), 1.0)
        radius *= 1 + (second - 1) * (height + 1) / 2
        points = np.stack([radius * np.cos(u), radius * np.sin(u), height], axis=1)
    else:
        radius = (1 - first) + first * np.cos(v)
        points = np.stack(
            [radius * np.cos(u), radius * np.sin(u), first * np.sin(v)], axis=1
        )
    stretched = np.array(solid.scale) * np.exp(spread * draw.standard_normal(3))
    return points * stretched


def _power(x: Float64[np.ndarray, " P"], exponent: float) -> Float64[np.ndarray, " P"]:
    return np.sign(x) * np.abs(x) ** exponent


def rendered(points: Points, turn: float, side: int) -> UInt8[np.ndarray, "12 side2"]:
    """Returns depth images of an object from 12 azimuths, 30 degrees apart.

    The nearer a point, the lighter its pixel; a pixel shows the nearest point of the
    nine around it, which closes the gaps between points.

    Args:
        points: The object's surface.
        turn: Angle of the first view, rad.
        side: Height and width of an image, pixels.
    """
    azimuth = turn + 2 * np.pi * np.arange(VIEWS)[:, None] / VIEWS
    x, y, z = points.T.astype(np.float32)
    across = x * np.cos(azimuth) - y * np.sin(azimuth)
    towards = x * np.sin(azimuth) + y * np.cos(azimuth)
    up = np.cos(ELEVATION) * z - np.sin(ELEVATION) * towards
    near = np.cos(ELEVATION) * towards + np.sin(ELEVATION) * z
    row = ((REACH - up) / (2 * REACH) * side).astype(int).clip(0, side - 1)
    column = ((across + REACH) / (2 * REACH) * side).astype(int).clip(0, side - 1)
    grey = FAR + (NEAR - FAR) * ((near + REACH) / (2 * REACH)).clip(0, 1)
    images: Float32[np.ndarray, "12 R C"] = np.zeros(
        (VIEWS, side + 2, side + 2), np.float32
    )
    view = np.broadcast_to(np.arange(VIEWS)[:, None], row.shape)
    np.maximum.at(images, (view, row + 1, column + 1), grey.astype(np.float32))
    wide = np.maximum.reduce([images[:, :, j : j + side] for j in range(3)])
    closed = np.maximum.reduce([wide[:, i : i + side] for i in range(3)])
    return closed.round().astype(np.uint8).reshape(VIEWS, -1)
