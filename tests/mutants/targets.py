"""What is mutated, and which tests may notice."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGETS = (
    "simulator/world",
    "simulator/laws",
    "simulator/protocols",
    "simulator/recorders",
    "simulator/timelines",
    "simulator/results",
    "simulator/trace",
    "analysis/claims",
)
"""Folders and files whose mutants are sampled from."""
TESTS = (
    "tests/unit/world",
    "tests/unit/trace",
    "tests/unit/protocols",
    "tests/property",
    "tests/golden",
    "tests/verification",
    "tests/unit/test_results.py",
    "tests/unit/test_commit.py",
    "tests/unit/test_messages.py",
    "tests/unit/test_gossip_runs.py",
    "tests/unit/test_privacy_runs.py",
    "tests/unit/test_timeline_command.py",
    "tests/unit/test_hostile.py",
    "tests/unit/studies",
    "tests/unit/analysis",
    "tests/reference/test_twins.py",
)
"""Tests that play, record or judge in this process; the others are compilations."""


def files() -> list[str]:
    """Returns the files that are mutated, from the repository's root."""
    return _python(TARGETS, "*.py")


def test_files() -> list[str]:
    """Returns the files of tests that are mapped if none are named."""
    return _python(TESTS, "test_*.py")


def _python(places: tuple[str, ...], pattern: str) -> list[str]:
    found: list[Path] = []
    for place in places:
        path = ROOT / place
        found += sorted(path.rglob(pattern)) if path.is_dir() else [path]
    return [path.relative_to(ROOT).as_posix() for path in found]
