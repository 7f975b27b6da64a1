"""Every call that writes a study fails, is torn or is the last: resume mends it.

After each, the study is completed and must be the one that nothing has disturbed.
"""

import contextlib
import errno
import itertools
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from stalesim.simulator.files.study import load
from stalesim.simulator.parts.errors import StudyError
from tests.unit.studies import fake_study
from tests.unit.studies.fake_disk import FakeDisk, Files, KilledError
from tests.unit.studies.fake_study import PATH
from tests.unit.studies.play_runner import check_what_is_there

FAULTS: dict[str, Callable[[], BaseException]] = {
    "full": lambda: OSError(errno.ENOSPC, "No space left on device"),
    "broken": lambda: OSError(errno.EIO, "Input/output error"),
    "killed": KilledError,
}


LONG = pytest.mark.long
SEEDS = [0, *(pytest.param(seed, marks=LONG) for seed in range(1, 20))]


@pytest.fixture(autouse=True, params=["cheap", pytest.param("real", marks=LONG)])
def _fake(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Does without numerics, and, where that is cheap, without Parquet."""
    fakes = {"cheap": fake_study.fake_cheaply, "real": fake_study.fake}
    fakes[request.param](monkeypatch)


def at_call(number: int, fault: str) -> Callable[[str], BaseException | None]:
    """Returns what lets a call fail, and, where that is death, all later ones."""
    counter = itertools.count(1)

    def before(name: str) -> BaseException | None:
        call = next(counter)
        if call == number or (call > number and fault == "killed"):
            return FAULTS[fault]()
        return None

    return before


def calls_of_a_study(files: Files) -> int:
    counter = itertools.count(0)

    def count(name: str) -> None:
        next(counter)

    fake_study.simulate(FakeDisk(files, count))
    return next(counter)


@pytest.fixture(name="whole")
def _whole() -> fake_study.Study:
    files = Files()
    study = fake_study.simulate(FakeDisk(files))
    for name, table in fake_study.expected().items():
        pd.testing.assert_frame_equal(
            study.table(name)[table.columns], table, check_dtype=False
        )
    return study


def test_undisturbed_there_are_calls_of_every_kind(whole: fake_study.Study) -> None:
    seen: set[str] = set()

    def note(name: str) -> None:
        seen.add(name)

    fake_study.simulate(FakeDisk(Files(), note))
    assert seen >= {"make", "write", "append", "sync", "rename", "remove", "lock"}
    assert len(fake_study.TASKS) == 4


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "torn"),
    [("full", 0.5), ("broken", 0), ("killed", 0), ("killed", 0.5), ("killed", 1)],
)
def test_a_call_that_fails_loses_nothing(
    fault: str, torn: float, whole: fake_study.Study
) -> None:
    calls = calls_of_a_study(Files())
    assert calls > 50
    for number in range(1, calls + 1):
        files = Files()
        with contextlib.suppress(KilledError, StudyError):
            fake_study.simulate(FakeDisk(files, at_call(number, fault), torn))
        check_what_is_there(files)
        fake_study.assert_undisturbed(fake_study.simulate(FakeDisk(files)), whole)


@pytest.mark.filterwarnings("ignore::stalesim.simulator.files.study.StudyWarning")
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(s, marks=pytest.mark.long) for s in range(1, 6))]
)
def test_a_loss_of_power_is_seen_and_mended(seed: int, whole: fake_study.Study) -> None:
    for number in range(1, calls_of_a_study(Files()) + 1):
        files, rng = Files(), np.random.default_rng([seed, number])
        with pytest.raises(KilledError):
            fake_study.simulate(FakeDisk(files, at_call(number, "killed"), 0.5))
        files.lose_power(rng)
        check_what_is_there(files)
        fake_study.assert_undisturbed(fake_study.simulate(FakeDisk(files)), whole)


@pytest.mark.long
def test_a_second_fault_while_resuming_is_mended_as_well(
    whole: fake_study.Study,
) -> None:
    calls = calls_of_a_study(Files())
    for first in range(5, calls, 7):
        for second in range(3, calls - first, 7):
            files = Files()
            for number in (first, second):
                try:
                    disk = FakeDisk(files, at_call(number, "killed"))
                    fake_study.simulate(disk)
                except KilledError:
                    fake_study.assert_undisturbed(
                        fake_study.simulate(FakeDisk(files)), whole
                    )


def removing(number: int, files: Files) -> Callable[[str], None]:
    """Returns what removes the study's folder before a call."""
    counter = itertools.count(1)

    def before(name: str) -> None:
        if next(counter) == number:
            for path in [p for p in files.names if p.startswith(str(PATH))]:
                del files.names[path]

    return before


def test_a_folder_that_vanishes_ends_the_study() -> None:
    after_the_end = 2  # folders of the session are cleared
    for number in range(10, calls_of_a_study(Files()) - after_the_end, 3):
        files = Files()
        with pytest.raises(StudyError, match=str(PATH)):
            fake_study.simulate(FakeDisk(files, removing(number, files)))


def test_a_folder_that_is_replaced_is_not_written(whole: fake_study.Study) -> None:
    files, counter = Files(), itertools.count(1)

    def replace(name: str) -> None:
        if next(counter) == 40:
            mine = [p for p in files.names if p.startswith(str(PATH))]
            for path in mine:
                del files.names[path]
            fake_study.simulate(FakeDisk(files))

    said = r"small: must (stay in place|be written by the process)"
    with pytest.raises(StudyError, match=said):
        fake_study.simulate(FakeDisk(files, replace))
    fake_study.assert_undisturbed(load(PATH, FakeDisk(files)), whole)
