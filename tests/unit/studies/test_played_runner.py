"""Histories of the runner, killed, starved, cut off, doubled: never a wrong study."""

import pytest

from tests.unit.studies import fake_study
from tests.unit.studies.play_runner import Play, history

NUM_SLOW = 10_000
"""How many more were played: docs/reliability.md."""


def test_a_seed_repeats_a_history(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_study.fake_cheaply(monkeypatch)
    one, other = history(3, faults=8), history(3, faults=8)
    assert one.env.now == other.env.now
    assert one.told == other.told
    assert len(one.processes) == len(other.processes) > 2


def test_histories_hold_every_kind_of_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_study.fake_cheaply(monkeypatch)
    seen: set[str] = set()
    happen = Play._happen

    def note(self: Play, what: str) -> None:
        seen.add(what)
        happen(self, what)

    monkeypatch.setattr(Play, "_happen", note)
    told = [line for seed in range(60) for line in history(seed).told]
    assert seen == {
        *("kill", "kill runner", "interrupt", "power", "rot", "full", "second")
    }
    assert any("No space left on device" in line for line in told)


def test_histories_with_the_real_files(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_study.fake(monkeypatch)
    for seed in range(40):
        history(seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(20))
def test_many_histories(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_study.fake_cheaply(monkeypatch)
    each = NUM_SLOW // 20
    for seed in range(block * each, (block + 1) * each):
        history(seed)
