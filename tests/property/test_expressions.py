"""Expressions against Python's own fractions, and scenarios to YAML and back."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.parts.expressions import check_syntax, evaluate
from stalesim.simulator.scenario import dialect
from stalesim.simulator.scenario.reading import loads, to_yaml
from stalesim.simulator.scenario.scenario import Scenario

common = settings(deadline=None, derandomize=True, max_examples=200)

m, M = 3, 7
Tree = tuple[str, Fraction | None]
"""A text and its exact value; None where it divides by zero."""


def _literal(value: int | float) -> Tree:
    return repr(value), Fraction(repr(value))


def _joined(parts: tuple[str, Tree, Tree]) -> Tree:
    operator, (left, a), (right, b) = parts
    text = f"({left} {operator} {right})"
    if a is None or b is None:
        return text, None
    if operator in ("max", "min"):
        return f"{operator}({left}, {right})", max(a, b) if operator == "max" else min(
            a, b
        )
    if operator in ("/", "//", "%") and b == 0:
        return text, None
    value = {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "/": lambda: a / b,
        "//": lambda: Fraction(a // b),
        "%": lambda: a % b,
    }[operator]()
    return text, value


def _attempt(text: str) -> Fraction | float | ScenarioError:
    try:
        return evaluate(check_syntax(text), m, M)
    except ScenarioError as error:
        return error


def _negated(tree: Tree) -> Tree:
    text, value = tree
    return f"-({text})", None if value is None else -value


leaves = st.one_of(
    st.sampled_from([("m", Fraction(m)), ("M", Fraction(M))]),
    st.integers(0, 1000).map(_literal),
    st.floats(1e-6, 1e3).map(_literal),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(
            st.sampled_from(["+", "-", "*", "/", "//", "%", "max", "min"]), inner, inner
        ).map(_joined),
        inner.map(_negated),
    ),
    max_leaves=8,
)


@common
@given(trees)
def test_values_are_those_of_pythons_fractions(tree: Tree) -> None:
    text, expected = tree
    assume(len(text) <= 300)
    if expected is None:
        with pytest.raises(ScenarioError, match="divides by zero"):
            evaluate(text, m, M)
        return
    assume(abs(expected) <= 10**20)  # with 8 leaves below 1000 no step is above 1e30
    value = _attempt(text)
    if isinstance(value, ScenarioError):
        # Only numbers of many digits, divided, may pass the limits in between.
        assert "1e30" in str(value) or "1e400" in str(value)
        return
    assert isinstance(value, Fraction)
    assert value == expected


letters = st.text(
    alphabet="mM0123456789.eE+-*/%()[]{}, _'\"\\=<>:;@#!~&|^jinfax\n", max_size=40
)


@common
@given(st.one_of(st.text(max_size=60), letters))
@example("1if m else 2")
@example("0x")
@example("'\\d'")
@example("f'{m}'")
@example("m" + "()" * 140)
def test_any_text_is_a_number_or_a_mistake_told_in_one_line(text: str) -> None:
    value = _attempt(text)
    if isinstance(value, ScenarioError):
        assert str(value).isprintable()
    else:
        assert isinstance(value, Fraction | float)
        assert abs(value) <= 10**30


@common
@given(st.one_of(st.text(max_size=80), letters))
@example("a: *b")
@example("a: !!set {b}")
@example("%YAML 9.9\n---\na: b")
@example("a: &x [*x]")
@example("? {a: b}\n: c")
@example("!!binary a")
def test_any_text_is_a_scenario_or_mistakes_of_a_line_each(text: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        loads(text, "f")
    lines = caught.value.lines
    assert str(caught.value).split("\n") == lines
    assert all(line.isprintable() for line in lines)
    assert all(line.startswith("f:") for line in lines[:10])
    assert len(lines) <= 11


keys = st.text(max_size=8)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False)
    | st.text(max_size=12)
    | st.sampled_from(
        ["no", "on", "1e3", "010", "08", "0x1", "12:30:00", "~", "<<", "="]
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3)
    ),
    max_leaves=6,
)


@common
@given(st.dictionaries(keys, values, max_size=4))
def test_yaml_is_read_as_it_was_written(tree: dict[str, Any]) -> None:
    assert dialect.compose(dialect.dump(tree), str)[0] == tree


durations = st.one_of(
    st.fixed_dictionaries(
        {
            "law": st.just("constant"),
            "value": st.floats(1e-9, 1e9) | st.sampled_from(["2*m", "1/(2*M)", "1e-3"]),
        }
    ),
    st.fixed_dictionaries(
        {
            "law": st.just("gamma"),
            "a": st.lists(st.floats(0.1, 9), min_size=4, max_size=4),
            "scale": st.integers(1, 9),
            "shift": st.floats(0, 1),
        }
    ),
)
scenarios = st.fixed_dictionaries(
    {
        "name": st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,8}", fullmatch=True),
        "source": st.text(max_size=20),
        "question": st.sampled_from(["", "no", "1e3", "08", "null", "# a\nb"]),
        "seed": st.integers(0, 2**40),
        "replicates": st.integers(1, 3),
        "problem": st.fixed_dictionaries(
            {
                "data": st.just({"kind": "digits"}),
                "partition": st.just({"kind": "vertical", "parties": 4}),
                "l2": st.floats(0, 1),
            }
        ),
        "clients": st.fixed_dictionaries({"compute": durations, "idle": durations}),
        "protocol": st.sampled_from(
            [{"kind": "asynchronous"}, {"kind": "t_synchronous", "t": 3}]
        ),
        "algorithm": st.fixed_dictionaries(
            {
                "kind": st.just("vafl"),
                "step_size": st.floats(0, 10)
                | st.just({"kind": "constant", "value": 0.5}),
                "batch": st.integers(1, 50) | st.floats(0.01, 0.99),
                "upload": st.sampled_from(["batch", "all"]),
            }
        ),
        "stop": st.fixed_dictionaries({"time": st.floats(1e-9, 1e12)}),
        "evaluate": st.just({"every": {"commits": 5}}),
        "variants": st.dictionaries(
            st.text(max_size=6),
            st.just({"stop": {"time": None, "commits": 9}}),
            max_size=2,
        ),
        "sweep": st.just({}) | st.just({"algorithm.step_size": [0.1, 1, 1e-9]}),
    }
)


@settings(common, max_examples=60)
@given(scenarios)
def test_a_scenario_comes_back_from_yaml(tree: dict[str, Any]) -> None:
    scenario = Scenario.model_validate(tree)
    assert loads(to_yaml(scenario), "f") == scenario
