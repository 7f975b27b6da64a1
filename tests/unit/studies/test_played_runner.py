"""Histories of the runner, killed, starved, cut off, doubled: never a wrong study."""

import pytest

from tests.unit.studies import fake_study
from tests.unit.studies.play_runner import (
    WHAT,
    Play,
    assert_repeated,
    every_kind,
    history,
)

NUM_SLOW = 10_000
"""How many more were played: docs/reliability.md."""


@pytest.fixture
def _cheaply(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_study.fake_cheaply(monkeypatch)


@pytest.mark.usefixtures("_cheaply")
def test_a_seed_repeats_a_history() -> None:
    assert_repeated(history)


@pytest.mark.usefixtures("_cheaply")
def test_histories_hold_every_kind_of_fault() -> None:
    seen, plays = every_kind(Play, history, 60)
    assert seen == {*WHAT}
    assert any(
        "No space left on device" in line for play in plays for line in play.told
    )


def test_histories_with_the_real_files(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_study.fake(monkeypatch)
    for seed in range(40):
        history(seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(20))
@pytest.mark.usefixtures("_cheaply")
def test_many_histories(block: int) -> None:
    each = NUM_SLOW // 20
    for seed in range(block * each, (block + 1) * each):
        history(seed)
