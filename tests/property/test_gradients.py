"""Every gradient, compiled as runs compile it, against finite differences.

XLA has compiled one wrongly without a word (evidence/pages/speed.md, "A wrong gradient
from the compiler"). The differences are of the function compiled without optimisation,
which was right then.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.property.gradient_cases import KINDS, Case, Draw
from tests.quick import plain

STEP = 1e-6
"""Of the central difference, for a direction of about one in every number."""
MORE = 6
"""Cases of each kind beside the first one."""


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def check(case: Callable[[Draw], Case], number: int) -> None:
    """Compares value and directional derivative.

    The difference is (f(+h) - f(-h)) / 2h with h = 1e-6. f adds up weighted numbers
    whose absolute values add up to S; each is off by at most 50 roundings u = 1.1e-16
    (the longest sum of a case has fewer than 400 terms, whose roundings add up like
    their square root): 2 * 50 u S / 2h = 5.6e-9 S. What is cut off, h**2 / 6 = 2e-13
    times the third derivative along a direction of about one in every number, is less
    as long as that derivative is below 1e4 S; a few layers have some 1e2 S. A number of
    the gradient that is somebody else's is off by about its own size.
    """
    draw = Draw(number, case.__name__)
    function, at, of = case(draw)
    shape = jax.eval_shape(function, *at)
    slopes = draw.normal(*shape.shape)

    def terms(*arrays: jax.Array) -> jax.Array:
        return slopes * function(*arrays)

    def total(*arrays: jax.Array) -> jax.Array:
        return jnp.sum(terms(*arrays))

    value, gradient = jax.jit(jax.value_and_grad(total, argnums=tuple(range(of))))(*at)
    slow = plain(lambda *arrays: (total(*arrays), jnp.abs(terms(*arrays)).sum()), *at)
    expected, scale = slow(*at)
    assert abs(value - expected) <= 1e-13 * scale

    direction = [draw.normal(*array.shape) for array in at[:of]]
    ahead, behind = (
        slow(*[a + s * STEP * v for a, v in zip(at, direction, strict=False)], *at[of:])
        for s in (1, -1)
    )
    difference = float(ahead[0] - behind[0]) / (2 * STEP)
    found = sum(
        float(np.sum(np.asarray(g) * v))
        for g, v in zip(gradient, direction, strict=True)
    )
    assert abs(found - difference) <= 1e-7 * (float(scale) + abs(difference))


@pytest.mark.parametrize("kind", KINDS)
def test_four_rows_and_widths_of_five(kind: str) -> None:
    check(KINDS[kind], 0)


@pytest.mark.long
@pytest.mark.parametrize("number", range(1, 1 + MORE))
def test_sizes_that_are_drawn(number: int) -> None:
    for case in KINDS.values():
        check(case, number)
