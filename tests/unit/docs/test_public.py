"""The public names: what the reference names, and how a name may come and go."""

import pytest

from stalesim.simulator.parts.version import __version__
from tests.golden import public
from tests.golden.public import Name


def test_every_name_has_its_line() -> None:
    """If names were added on purpose: `python -m tests.golden.public`."""
    assert public.faults(public.kept(), public.of_reference(), __version__) == []


def test_the_reference_is_read_whole() -> None:
    names = {*public.of_reference()}
    assert {
        "python: simulator: simulate",
        "python: analysis: convergence",
        "command-line: stalesim plot: FOLDER",
        "scenario: replicates",
        "scenario: a study: problem.server.hidden",
        "scenario: a world: job.upload_bytes",
        "protocols: buffered: size",
        "laws: mixture",
        "trace: jobs: run",
    } <= names


@pytest.mark.parametrize(
    ("line", "now", "said"),
    [
        (Name("a", "1.0"), ["a"], ""),
        (Name("a", "1.0", "1.1"), ["a"], ""),
        (Name("a", "1.0", "1.1", "1.2", "b"), [], ""),
        (Name("a", "1.0"), ["a", "b"], "b: is new and has no line"),
        (Name("a", "1.0"), [], "a: is not there"),
        (Name("a", "1.0", "1.1"), [], "a: is not there"),
        (Name("a", "1.0", "1.1", "1.2", "b"), ["a"], "a: is there"),
        (Name("a", "1.0", "", "1.2", "b"), [], "without deprecation or a way on"),
        (Name("a", "1.0", "1.1", "1.2"), [], "without deprecation or a way on"),
        (Name("a", "1.0", "1.2", "1.2", "b"), [], "1.0, 1.2, 1.2 must rise"),
        (Name("a", "1.3"), ["a"], "1.3 is after 1.2.0"),
    ],
)
def test_how_a_name_may_come_and_go(line: Name, now: list[str], said: str) -> None:
    found = public.faults([line], now, "1.2.0")
    assert said in "; ".join(found)
    assert bool(found) == bool(said)
