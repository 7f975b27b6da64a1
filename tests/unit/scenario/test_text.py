"""What is shown of a user's words, and how much."""

import re

import pytest

from stalesim.simulator.parts.errors import (
    UserError,
    brief,
    counted,
    one_line,
    printable,
    ranges,
    shortened,
)
from stalesim.simulator.scenario.reading import loads
from tests.unit.scenario.mistakes import TABLES

BASE = TABLES["scenario study"]["good"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("as it is: [/b] $x$ \\n ü 快 😀", "as it is: [/b] $x$ \\n ü 快 😀"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("tab\there", r"tab\there"),
        ("\u202eabc\u202c\u2066", r"\u202eabc\u202c\u2066"),
        ("95\u00a0%\u2009x", "95\u00a0%\u2009x"),
        ("👩\u200d🔬 می\u200cخواهم", "👩\u200d🔬 می\u200cخواهم"),
        ("\ud800", r"\ud800"),
        ("two\nlines", "two\nlines"),
        ("para\u2029graph\r", r"para\u2029graph\r"),
    ],
)
def test_what_a_terminal_would_obey_is_shown_as_an_escape(
    text: str, shown: str
) -> None:
    assert printable(text) == shown
    assert one_line(text) == shown.replace("\n", r"\n")


def test_long_text_keeps_its_beginning_and_its_end() -> None:
    text = "".join(chr(97 + number % 26) for number in range(1000))
    found = shortened(text, 60)
    assert len(found) == 60
    before, after = found.split("...")
    assert text.startswith(before)
    assert text.endswith(after)
    assert shortened(text, 1000) == text


def test_messages_quote_no_more_than_a_line_or_two() -> None:
    said = "it's the case that's shown: " + "word " * 100
    assert brief(said) == said
    path = "/".join(["folder"] * 50)
    assert brief(f"{path}: there is no such file") == f"{path}: there is no such file"
    long = "a word " * 1000
    for quoted in (f"'{long}'", "x" * 10_000):
        message = str(UserError(f"kind must be known, got {quoted}; change it"))
        assert len(message) < 300
        assert message.startswith("kind must be known, got ")
        assert message.endswith("; change it")


LONG = "k" * 10_000
PLACES = {
    "kind": ("kind: vafl", f"kind: {LONG}"),
    "law": ("law: poisson", f"law: {LONG}"),
    "key": ("step_size: 0.1\n", f"step_size: 0.1\n  {LONG}: 1\n"),
    "number": ("batch: 0.01", f"batch: {LONG}"),
    "words": ("kind: asynchronous", f'kind: "{"no such " * 1000}"'),
    "variant": ("async: {}", f"{LONG}: {{{LONG}: 1}}"),
    "expression": ('"2*m"', f'"2*{LONG}"'),
    "sweep": ("algorithm.step_size:", f"{LONG}:"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_long_mistake_is_a_short_message(place: str) -> None:
    old, new = PLACES[place]
    assert old in BASE
    with pytest.raises(UserError) as caught:
        loads(BASE.replace(old, new), "x.yaml")
    message = str(caught.value)
    assert len(message) < 1000
    assert "\n" not in message


def test_a_long_override_is_a_short_message() -> None:
    with pytest.raises(UserError) as caught:
        loads(BASE, "x.yaml", [f"algorithm.{LONG}={LONG}"])
    assert len(str(caught.value)) < 1000


def test_half_a_character_is_refused_with_its_place() -> None:
    for entry in ('variants: {"\\ud800": {}}', 'source: "\\udfff"'):
        with pytest.raises(UserError, match=re.escape("x.yaml:")) as caught:
            loads(f"{TABLES['scenario methods']['good']}{entry}\n", "x.yaml")
        assert "must be text, but has the character" in str(caught.value)


def test_numbers_in_words() -> None:
    assert counted(1, "run") == "1 run"
    assert counted(0, "run") == "0 runs"
    assert counted(2, "batch", "batches") == "2 batches"
    assert counted(1, "batch", "batches") == "1 batch"
    assert ranges([3, 0, 1, 2, 5]) == "0 to 3, 5"
