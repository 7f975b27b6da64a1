"""Arithmetic in the client index `m` and the client count `M`, evaluated safely.

Exact: with rational numbers and `+ - * / // % **` the result is a Fraction; a number is
read as it is written (`1e-6` is one millionth).
"""

import ast
import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from simulator.scenario.errors import ScenarioError

Number = Fraction | float

LARGEST = 10**30
"""No intermediate result may be larger, so that `9**9**9` is an error, not a hang."""

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": math.ceil,
    "exp": math.exp,
    "floor": math.floor,
    "log": math.log,
    "max": max,
    "min": min,
    "sqrt": math.sqrt,
}
ALLOWED = f"numbers, m, M, + - * / // % ** and {', '.join(_FUNCTIONS)}"


def evaluate(quantity: int | float | str, m: int, M: int) -> Number:
    """Returns the value of a number or an expression for one client.

    Args:
        quantity: what the scenario has.
        m: the client, from 1.
        M: how many clients there are.

    Raises:
        ScenarioError: it is not an expression of the allowed kind, or has no value.
    """
    if not isinstance(quantity, str):
        return _exact(quantity)
    try:
        value = _value(_parse(quantity), {"m": Fraction(m), "M": Fraction(M)})
    except ZeroDivisionError:
        raise ScenarioError(f"{quantity!r} divides by zero for m = {m}") from None
    except (ValueError, OverflowError) as error:
        if isinstance(error, ScenarioError):
            raise
        raise ScenarioError(f"{quantity!r} has no value for m = {m}: {error}") from None
    return value


def per_client(
    quantity: int | float | str | tuple[int | float, ...], num_clients: int, name: str
) -> list[Number]:
    """Returns the value of a quantity for every client.

    Args:
        quantity: a number, an expression, or one number per client.
        num_clients: how many.
        name: of the quantity, for messages.

    Raises:
        ScenarioError: a list of another length, or an expression without a value.
    """
    if isinstance(quantity, tuple | list):
        if len(quantity) != num_clients:
            raise ScenarioError(
                f"{name} must have one entry per client ({num_clients}), got "
                f"{len(quantity)}"
            )
        return [_exact(value) for value in quantity]
    if isinstance(quantity, str) and _depends_on_client(quantity):
        return [evaluate(quantity, m + 1, num_clients) for m in range(num_clients)]
    return [evaluate(quantity, 1, num_clients)] * num_clients


def check_syntax(text: str) -> str:
    """Returns an expression unchanged if it is one; for validation.

    Raises:
        ScenarioError: something in it is not allowed.
    """
    for node in ast.walk(_parse(text)):
        _refuse(node, text)
    return text


def _depends_on_client(text: str) -> bool:
    names = (n for n in ast.walk(_parse(text)) if isinstance(n, ast.Name))
    return any(name.id == "m" for name in names)


def _parse(text: str) -> ast.expr:
    if len(text) > 500:
        raise ScenarioError("an expression must have at most 500 characters")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ScenarioError(
            f"{text!r} must be a number or an expression ({ALLOWED})"
        ) from None


def _refuse(node: ast.AST, text: str) -> None:
    """Raises what is wrong with one node of an expression, if anything is."""
    if isinstance(node, ast.Call):
        called = (
            node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        )
        if called not in _FUNCTIONS or node.keywords:
            raise ScenarioError(
                f"{text!r} must not call {called!r}; allowed are {ALLOWED}"
            )
    elif isinstance(node, ast.Name):
        if node.id not in ("m", "M") and node.id not in _FUNCTIONS:
            raise ScenarioError(
                f"{text!r} must not use the name {node.id!r}; allowed are {ALLOWED}"
            )
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise ScenarioError(f"{text!r} must not use {node.value!r}; only numbers")
        if not math.isfinite(node.value):
            raise ScenarioError(f"{text!r} must not use a number as large as this")
    elif isinstance(node, ast.BinOp):
        if type(node.op) not in _BINARY and not isinstance(node.op, ast.Pow):
            raise ScenarioError(
                f"{text!r} must not use this operator; allowed: {ALLOWED}"
            )
    elif isinstance(node, ast.UnaryOp):
        if not isinstance(node.op, ast.USub | ast.UAdd):
            raise ScenarioError(
                f"{text!r} must not use this operator; allowed: {ALLOWED}"
            )
    elif not isinstance(node, ast.operator | ast.unaryop | ast.expr_context):
        raise ScenarioError(
            f"{text!r} must be arithmetic, got {type(node).__name__}; allowed: {ALLOWED}"
        )


def _value(node: ast.expr, names: dict[str, Fraction]) -> Number:
    text = ast.unparse(node)
    _refuse(node, text)
    match node:
        case ast.Constant(value=int() | float() as value):
            result: Any = _exact(value)
        case ast.Name(id=name):
            if name not in names:
                raise ScenarioError(f"{name!r} must be called, as {name}(...)")
            result = names[name]
        case ast.UnaryOp(op=op, operand=operand):
            value = _value(operand, names)
            result = -value if isinstance(op, ast.USub) else value
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            result = _power(_value(left, names), _value(right, names), text)
        case ast.BinOp(left=left, op=op, right=right):
            result = _BINARY[type(op)](_value(left, names), _value(right, names))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            try:
                result = _FUNCTIONS[name](*(_value(a, names) for a in arguments))
            except TypeError as error:
                raise ScenarioError(f"{text!r}: {error}") from None
        case _:
            raise ScenarioError(f"{text!r} must be arithmetic; allowed are {ALLOWED}")
    return _bounded(result, text)


def _power(base: Number, exponent: Number, text: str) -> Number:
    if abs(exponent) > 100:
        raise ScenarioError(f"{text!r} must have an exponent of at most 100")
    result = base**exponent
    if isinstance(result, complex):
        raise ScenarioError(f"{text!r} must be real")
    return result


def _bounded(value: Any, text: str) -> Number:
    if isinstance(value, int):
        value = Fraction(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ScenarioError(f"{text!r} must be finite")
    if abs(value) > LARGEST or (
        isinstance(value, Fraction) and value.denominator > LARGEST
    ):
        return float(value) if abs(value) <= LARGEST else _too_large(text)
    return value


def _too_large(text: str) -> Number:
    raise ScenarioError(f"{text!r} must be at most 1e30 in magnitude")


def _exact(value: int | float) -> Fraction:
    return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
