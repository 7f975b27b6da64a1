"""Expressions in m and M: exact where they can be, else refused with a reason."""

import math
import time
from fractions import Fraction
from typing import Any

import pytest

from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.parts.expressions import check_syntax, evaluate, per_client


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        (3, Fraction(3)),
        (1e-6, Fraction(1, 10**6)),
        (0.1, Fraction(1, 10)),
        ("1e-6", Fraction(1, 10**6)),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("2*m", Fraction(6)),
        ("1/(2*M)", Fraction(1, 14)),
        ("-m**2 + +1", Fraction(-8)),
        ("m**-1", Fraction(1, 3)),
        ("M // m", Fraction(2)),
        ("-M // m", Fraction(-3)),
        ("M % m", Fraction(1)),
        ("max(m, M, 2) - min(m, M)", Fraction(4)),
        ("abs(m - M)", Fraction(4)),
        ("ceil(M/2) + floor(M/2)", Fraction(7)),
        ("(1, 2, 3)", None),
        ((1, 2, 5, 4, 5, 6, 7), Fraction(5)),
    ],
)
def test_rational_arithmetic_is_exact(quantity: Any, expected: Fraction | None) -> None:
    if expected is None:
        with pytest.raises(ScenarioError):
            evaluate(quantity, 3, 7)
        return
    value = evaluate(quantity, 3, 7)
    assert isinstance(value, Fraction)
    assert value == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sqrt(m)", math.sqrt(3)),
        ("exp(-m/M)", math.exp(-3 / 7)),
        ("log(M)", math.log(7)),
        ("log(8, 2)", 3.0),
        ("m**0.5", math.sqrt(3)),
        ("2*sqrt(4) + 1/2", 4.5),
    ],
)
def test_the_rest_is_a_float(text: str, expected: float) -> None:
    value = evaluate(text, 3, 7)
    assert isinstance(value, float)
    assert value == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__import__('os')", "must not call '__import__'"),
        ("m.real", "Attribute"),
        ("(lambda: 1)()", "must not call"),
        ("[m for m in (1, 2)]", "ListComp"),
        ("m if m else 1", "IfExp"),
        ("m == 1", "Compare"),
        ("not m", "UnaryOp"),
        ("m @ M", "operator MatMult"),
        ("m & M", "operator BitAnd"),
        ("n", "the name 'n'"),
        ("max", "must call 'max'"),
        ("max(1)", "'max' with 1 arguments"),
        ("sqrt(1, 2)", "'sqrt' with 2 arguments"),
        ("max(*m)", "with 1 arguments"),
        ("max(1, key=2)", "must not call"),
        ("True", "must not use True"),
        ("1j", "must not use 1j"),
        ("'a'", "Constant"),
        ("None", "Constant"),
        ("1e999", "above 1e30"),
        ("", "a number or an expression"),
        ("1 +", "a number or an expression"),
        ("010", "a number or an expression"),
        ("m = 1", "a number or an expression"),
        ("a\nb", "a number or an expression"),
        ("\x00", "a number or an expression"),
        ("\ud800", "a number or an expression"),
        ("(" * 299, "a number or an expression"),
        ("1" * 301, "at most 300 characters, got 301"),
    ],
)
def test_what_is_no_arithmetic_is_refused_before_it_is_used(
    text: str, words: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        check_syntax(text)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("9**9**9", "an exponent of at most 100"),
        ("10**20 * 10**20", "at most 1e30"),
        ("((1/99999)**100)**100", "simpler fraction"),
        ("exp(10**9)", "range"),
        ("exp(300)", "at most 1e30"),
        ("1/(m-3)", "divides by zero for m = 3, M = 7"),
        ("m % 0", "divides by zero"),
        ("0**-1", "divides by zero"),
        ("sqrt(-1)", "has none for m = 3"),
        ("log(0)", "has none for m = 3"),
        ("(-m)**0.5", "must be real"),
    ],
)
def test_what_has_no_value_is_told_at_once(text: str, words: str) -> None:
    check_syntax(text)
    begin = time.perf_counter()
    with pytest.raises(ScenarioError) as caught:
        evaluate(text, 3, 7)
    assert words in str(caught.value)
    assert time.perf_counter() - begin < 5


def test_a_deep_expression_is_not_too_deep() -> None:
    assert evaluate("-" * 298 + "m", 3, 7) == 3


def test_a_quantity_has_a_value_for_every_client() -> None:
    assert per_client(2, 3, "x") == [2, 2, 2]
    assert per_client("M", 3, "x") == [3, 3, 3]
    assert per_client("2*m", 3, "x") == [2, 4, 6]
    assert per_client((1, 0.5, 2), 3, "x") == [1, Fraction(1, 2), 2]


def test_a_list_of_another_length_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"^x must have one .* \(3\), got 2; make"):
        per_client((1, 2), 3, "x")
    with pytest.raises(ScenarioError, match=r"one entry per client \(3\), got 2"):
        evaluate((1, 2), 1, 3)


def test_the_client_without_a_value_is_named() -> None:
    with pytest.raises(ScenarioError, match=r"^x: '1/\(m-2\)' .* for m = 2, M = 3"):
        per_client("1/(m-2)", 3, "x")
