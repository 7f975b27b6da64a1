"""Which arrays of a model stand between two others, read off its program."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import Literal

from .parts import Shapes, size
from .purity import programs_of

ROWS = 2
"""Rows of the batch that a model is traced with."""
PRODUCTS = ("dot_general", "conv_general_dilated", "gather", "ragged_dot_general")
"""Operations by which a value goes through an array."""
REMEMBERED = 64
"""Models whose hidden arrays a process remembers."""


class _Value(NamedTuple):
    """What is known of a value within a program.

    Attributes:
        made: Numbers of the arrays that it is made of; None once it depends on rows.
        last: Arrays that it went through last; of rows, and embeddings' sums, none.
        start: First place in the flat vector, of a part of it; None of other values.
    """

    made: frozenset[int] | None = frozenset()
    last: frozenset[int] = frozenset()
    start: int | None = None


@lru_cache(maxsize=REMEMBERED)
def hidden(model: Any, shapes: Shapes, rows: tuple[int, ...]) -> tuple[bool, ...]:
    """Says of each array of a model whether it is a hidden matrix.

    These are the matrices that take what other arrays made of the rows, and whose
    products are taken by others. Embeddings, the first layer and the last one are
    not, nor are arrays of one axis or of more than two.

    Args:
        model: What has `apply(weights, x)`, of a flat vector.
        shapes: Shapes of its arrays, in the order of the vector.
        rows: Shape of what it takes, the batch's axis being -1.

    Source: Jordan et al., Muon: An optimizer for hidden layers in neural networks
    (2024): input and output layers are AdamW's.
    """
    some = tuple(ROWS if axis == -1 else axis for axis in rows)
    of_type = (
        jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((size(shapes),), some)
    )
    program = jax.make_jaxpr(model.apply)(*of_type)
    reading = _Reading(shapes)
    vector, x = _Value(reading.within(0, size(shapes)), start=0), _Value(made=None)
    ends = reading.run(program, [vector, x])
    outermost = frozenset().union(*(end.last for end in ends))
    return tuple(
        len(shape) == 2 and number in reading.behind and number not in outermost
        for number, shape in enumerate(shapes)
    )


class _Reading:
    """Follows rows through the arrays of a program.

    Attributes:
        behind: Arrays that take what another array has made of the rows.
    """

    def __init__(self, shapes: Shapes) -> None:
        ends = list(accumulate(map(prod, shapes)))
        self._spans = list(zip([0, *ends], ends, strict=False))
        self.behind: set[int] = set()

    def within(self, start: int, end: int) -> frozenset[int]:
        """Returns the arrays that a part of the flat vector has numbers of."""
        return frozenset(
            number
            for number, (first, last) in enumerate(self._spans)
            if first < end and start < last
        )

    def run(self, program: Any, given: Sequence[_Value]) -> list[_Value]:
        """Returns what is known of a program's results."""
        program = getattr(program, "jaxpr", program)
        known = dict(zip(program.invars, given, strict=True))

        def of(each: Any) -> _Value:
            return _Value() if isinstance(each, Literal) else known.get(each, _Value())

        for equation in program.eqns:
            found = self._results(equation, list(map(of, equation.invars)))
            known |= dict(zip(equation.outvars, found, strict=True))
        return list(map(of, program.outvars))

    def _results(self, equation: Any, given: list[_Value]) -> list[_Value]:
        name, options = equation.primitive.name, equation.params
        count = len(equation.outvars)
        if name == "slice" and given[0].start is not None:
            return [self._part(given[0].start, equation)]
        if name == "split" and given[0].start is not None:
            firsts = accumulate(options["sizes"], initial=given[0].start)
            pairs = zip(firsts, options["sizes"], strict=False)
            return [_Value(self.within(a, a + n), start=a) for a, n in pairs]
        if name == "scan":
            fixed, carried = options["num_consts"], options["num_carry"]
            body = options["jaxpr"]
            return self._looped(lambda now: self.run(body, now), given, fixed, carried)
        if name == "while":
            fixed = options["cond_nconsts"]
            consts, body = options["body_nconsts"], options["body_jaxpr"]
            inner = given[fixed:]
            return self._looped(lambda now: self.run(body, now), inner, consts, count)
        if name == "cond":
            ways = [self.run(way, given[1:]) for way in options["branches"]]
            return [_joined(each) for each in zip(*ways, strict=True)]
        bodies = [
            body
            for body in programs_of(equation)
            if len(getattr(body, "jaxpr", body).invars) == len(given)
        ]
        if bodies:
            return self.run(bodies[0], given)[:count]
        if name in PRODUCTS:
            return [self._product(given)] * count
        return [_joined(given)] * count

    def _part(self, start: int, equation: Any) -> _Value:
        first, last = (
            equation.params[k][0] for k in ("start_indices", "limit_indices")
        )
        # Only of the vector itself is a slice a part of it.
        whole = len(equation.invars[0].aval.shape) == 1
        made = self.within(start + first, start + last)
        return _Value(made, start=start + first if whole else None)

    def _product(self, given: list[_Value]) -> _Value:
        """Returns what a product makes, and notes which array took what."""
        arrays = [each.made for each in given if each.made]
        rows = [each for each in given if each.made is None]
        if not arrays or not rows:
            return _joined(given)
        through = frozenset().union(*arrays)
        if any(each.last for each in rows):
            self.behind |= through
        return _Value(None, through)

    def _looped(
        self,
        run: Callable[[list[_Value]], list[_Value]],
        given: list,
        fixed: int,
        n: int,
    ) -> list[_Value]:
        """Returns the results of a loop, which it runs until it learns nothing new."""
        # A row of several arrays is no part of the flat vector.
        given = [
            *given[: fixed + n],
            *(g._replace(start=None) for g in given[fixed + n :]),
        ]
        while True:
            found = run(given)
            carried = [
                _joined(pair)
                for pair in zip(given[fixed : fixed + n], found[:n], strict=True)
            ]
            if carried == given[fixed : fixed + n]:
                return [*carried, *found[n:]]
            given[fixed : fixed + n] = carried


def _joined(given: Sequence[_Value]) -> _Value:
    """Returns what is known of a value that is made of others, element by element."""
    places = {each.start for each in given if each.made or each.made is None}
    made = None
    if all(each.made is not None for each in given):
        made = frozenset().union(*(each.made or () for each in given))
    last = frozenset().union(*(each.last for each in given))
    return _Value(made, last, places.pop() if len(places) == 1 else None)
