"""Arithmetic in the client index `m` and the client count `M`, evaluated safely.

Exact: with rational numbers and `+ - * / // %`, and `**` by a whole number, the result
is a Fraction; a number is read as it is written (`1e-6` is one millionth).
"""

import ast
import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from .base import Rule
from .errors import ScenarioError

SLACK = 1e-12
"""Part of a number, at least of 1: more than some products and quotients of floats
lose. `12 * 84 / 120 / 0.7` is 12, and 12.000000000000002 as floats, of which the next
whole number is 13."""
Number = Fraction | float

LARGEST = 10**30
"""No intermediate result may be larger, so that `9**9**9` is an error, not a hang."""
FINEST = 10**400
"""No exact result may have a larger denominator."""
LONGEST = 300
"""Characters that an expression may have."""

_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: left // right,
    ast.Mod: lambda left, right: left % right,
}
_FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "abs": (abs, 1, 1),
    "ceil": (math.ceil, 1, 1),
    "exp": (math.exp, 1, 1),
    "floor": (math.floor, 1, 1),
    "log": (math.log, 1, 2),
    "max": (max, 2, 99),
    "min": (min, 2, 99),
    "sqrt": (math.sqrt, 1, 1),
}
"""Each with the least and the most arguments that it takes."""
ALLOWED = f"numbers, m, M, + - * / // % ** and {', '.join(_FUNCTIONS)}"


def evaluate(
    quantity: int | float | str | tuple[int | float, ...], m: int, M: int
) -> Number:
    """Returns the value of a quantity for one client.

    Args:
        quantity: a number, an expression, or one number per client.
        m: The client, from 1 to M.
        M: How many clients there are.

    Raises:
        ScenarioError: it is not an expression of the allowed kind, has no value, or is
            a list of another length than M.
    """
    if isinstance(quantity, tuple | list):
        if len(quantity) != M:
            raise ScenarioError(
                f"a list must have one entry per client ({M}), got {len(quantity)}"
            )
        return _exact(quantity[m - 1])
    if not isinstance(quantity, str):
        return _exact(quantity)
    tree = _parsed(quantity)
    try:
        return _value(tree, {"m": Fraction(m), "M": Fraction(M)})
    except ScenarioError as error:
        raise ScenarioError(f"{quantity!r} {error} for m = {m}, M = {M}") from None
    except ZeroDivisionError:
        raise ScenarioError(
            f"{quantity!r} must have a value for every client, but divides by zero for "
            f"m = {m}, M = {M}"
        ) from None
    except (ValueError, OverflowError) as error:
        raise ScenarioError(
            f"{quantity!r} must have a value for every client, but has none for "
            f"m = {m}, M = {M}: {error}"
        ) from None


def per_client(
    quantity: int | float | str | tuple[int | float, ...], num_clients: int, name: str
) -> list[Number]:
    """Returns the value of a quantity for every client.

    Args:
        quantity: A number, an expression, or one number per client.
        num_clients: Number of clients.
        name: Name of the quantity, for messages.

    Raises:
        ScenarioError: a list of another length, or an expression without a value.
    """
    if isinstance(quantity, tuple | list):
        if len(quantity) != num_clients:
            raise ScenarioError(
                f"{name} must have one entry per client ({num_clients}), got "
                f"{len(quantity)}; make it as long, or use an expression in m and M"
            )
        return [_exact(value) for value in quantity]
    try:
        if depends_on_client(quantity):
            return [evaluate(quantity, m + 1, num_clients) for m in range(num_clients)]
        return [evaluate(quantity, 1, num_clients)] * num_clients
    except ScenarioError as error:
        raise ScenarioError(f"{name}: {error}; change the expression") from None


def check_syntax(text: str) -> str:
    """Returns an expression unchanged if it is one; for validation.

    Raises:
        ScenarioError: something in it is not allowed.
    """
    _parsed(text)
    return text


Expression = Annotated[str, AfterValidator(check_syntax)]
"""Arithmetic in `m` and `M`."""

QUANTITY = "a number, an expression in m and M, or a list with one number per client"
Quantity = Annotated[
    int | float | Expression | tuple[int | float, ...],
    Field(union_mode="left_to_right", description=QUANTITY),
    Rule(QUANTITY, '2, "1/(2*M)" or [1, 2, 3]'),
]


def depends_on_client(quantity: object) -> bool:
    """Returns whether a quantity is an expression with the client's number.

    Raises:
        ScenarioError: something in the expression is not allowed.
    """
    if not isinstance(quantity, str):
        return False
    names = (n for n in ast.walk(_parsed(quantity)) if isinstance(n, ast.Name))
    return any(name.id == "m" for name in names)


@lru_cache(maxsize=256)
def _parsed(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise ScenarioError(
            f"an expression must have at most {LONGEST} characters, got {len(text)}; "
            f"shorten it, or give a list with one entry per client"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python's, on text such as "1or 2"
            tree = ast.parse(text.strip(), mode="eval").body
        wrong = _wrong(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        wrong = "must be a number or an expression, without units (times are seconds)"
        raise ScenarioError(f"{text!r} {wrong}; allowed are {ALLOWED}") from None
    if wrong:
        raise ScenarioError(f"{text!r} {wrong}; allowed are {ALLOWED}")
    return tree


def _wrong(node: ast.expr) -> str:
    """Returns the first thing in an expression that is not allowed, or nothing."""
    match node:
        case ast.Constant(value=bool() | complex()):
            return f"must not use {node.value!r}"
        case ast.Constant(value=int() | float() as value):
            # A number such as 1e999 is read as infinite.
            return "" if abs(value) <= LARGEST else "must not use numbers above 1e30"
        case ast.Name(id="m" | "M"):
            return ""
        case ast.Name(id=name) if name in _FUNCTIONS:
            return f"must call {name!r}, as in {name}(...)"
        case ast.Name(id=name):
            return f"must not use the name {name!r}"
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return _wrong(operand)
        case ast.BinOp(left=left, op=op, right=right):
            if type(op) not in _BINARY and not isinstance(op, ast.Pow):
                return f"must not use the operator {type(op).__name__}"
            return _wrong(left) or _wrong(right)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            if name not in _FUNCTIONS:
                return f"must not call {name!r}"
            _, least, most = _FUNCTIONS[name]
            if not least <= len(arguments) <= most:
                return f"must not call {name!r} with {len(arguments)} arguments"
            return next(filter(None, map(_wrong, arguments)), "")
        case ast.Call(func=called):
            return f"must not call {ast.unparse(called)!r}"
        case _:
            return f"must be arithmetic, but has a Python {type(node).__name__}"


def _value(node: ast.expr, names: dict[str, Fraction]) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value):
            result: Number = _exact(value)
        case ast.Name(id=name):
            result = names[name]
        case ast.UnaryOp(op=op, operand=operand):
            value = _value(operand, names)
            result = -value if isinstance(op, ast.USub) else value
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            result = _power(_value(left, names), _value(right, names))
        case ast.BinOp(left=left, op=op, right=right):
            result = _BINARY[type(op)](_value(left, names), _value(right, names))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            result = _FUNCTIONS[name][0](*(_value(a, names) for a in arguments))
        case _:
            raise AssertionError(f"{type(node).__name__} was not refused")
    return _bounded(result)


def _power(base: Number, exponent: Number) -> Number:
    if abs(exponent) > 100:
        raise ScenarioError("must have an exponent of at most 100")
    result = base**exponent
    if isinstance(result, complex):
        raise ScenarioError("must be real, but takes a root of a negative number")
    return result


def _bounded(value: Number) -> Number:
    if isinstance(value, int):
        value = Fraction(value)
    if not abs(value) <= LARGEST:
        raise ScenarioError("must stay at most 1e30 in magnitude")
    if isinstance(value, Fraction) and value.denominator > FINEST:
        raise ScenarioError("must stay a simpler fraction (denominator above 1e400)")
    return value


def _exact(value: int | float) -> Fraction:
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)


def up(value: float) -> int:
    """Returns the least integer that is no less than a number, but for rounding.

    It may be a little below the number.
    """
    near = round(value)
    return near if _is_near(value, near) else math.ceil(value)


def down(value: float) -> int:
    """Returns the largest integer that is no more than a number, but for rounding.

    It may be a little above the number.
    """
    near = round(value)
    return near if _is_near(value, near) else math.floor(value)


def _is_near(value: float, near: int) -> bool:
    return abs(value - near) <= SLACK * max(1.0, abs(value))
