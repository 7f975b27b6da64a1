"""PhysioNet 2012: archives of stays, statistics, hourly sequences, damaged files."""

import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.catalogue.partitions.vertical import Views
from stalesim.simulator.extras.papers.data.physionet2012 import part, stays
from stalesim.simulator.extras.papers.data.physionet2012.part import (
    OUTCOMES_A,
    OUTCOMES_B,
    SET_A,
    SET_B,
    PhysioNet2012,
)
from stalesim.simulator.extras.papers.data.physionet2012.stays import VARIABLES
from stalesim.simulator.parts.errors import DataError
from tests.extras.papers.test_mimic import twin

NUM = 6
STATISTICS = PhysioNet2012(scale="raw")
HOURLY = PhysioNet2012(scale="raw", features="hourly")


def stay(record: int) -> list[tuple[int, str, float]]:
    """Returns minutes, variables and values of a stay: some repeated, some never."""
    draw = np.random.default_rng(record)
    rows = [(0, "Weight", float(-1 if record % 3 == 0 else 60 + record))]
    for number, variable in enumerate(VARIABLES[:30]):
        for _ in range(number % 4):
            minute = int(draw.integers(0, 2881))
            rows.append((minute, variable, round(float(draw.normal(50, 9)), 2)))
    rows.append((25, "HR", 80.0))
    rows += [(30, "HR", 90.0), (2880, "HR", 70.0), (200, "GCS", -1.0)]
    return sorted(rows, key=lambda row: row[0])


def text(record: int) -> str:
    first = [
        f"00:00,RecordID,{record}",
        f"00:00,Age,{20 + record % 50}",
        f"00:00,Gender,{record % 2}",
        f"00:00,Height,{-1 if record % 2 else 150 + record % 50}",
        f"00:00,ICUType,{1 + record % 4}",
    ]
    rows = [f"{m // 60:02d}:{m % 60:02d},{name},{v}" for m, name, v in stay(record)]
    return "\n".join(["Time,Parameter,Value", *first, *rows]) + "\n"


def records(half: str) -> range:
    return range(132_500, 132_500 + NUM) if half == "a" else range(142_600, 142_604)


def outcomes(half: str) -> str:
    rows = [f"{r},6,1,5,-1,{int(r % 3 == 0)}" for r in records(half)]
    return "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n" + (
        "\n".join(rows) + "\n"
    )


def entries(half: str) -> dict[str, str]:
    # Not in the order of their numbers, as in the real archives.
    return {f"set-{half}/{r}.txt": text(r) for r in reversed(records(half))}


def tar(path: Path, contents: dict[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(content.encode())
            archive.addfile(info, io.BytesIO(content.encode()))
    return path


def write_all(root: Path, **changed: str) -> Path:
    """Writes the four files; a stay without content is left out. Returns the folder."""
    folder = root / "physionet2012"
    for name, listed, half in ((SET_A, OUTCOMES_A, "a"), (SET_B, OUTCOMES_B, "b")):
        stays = entries(half)
        stays |= {k: text for k, text in changed.items() if k.startswith(f"set-{half}")}
        tar(folder / name, {k: text for k, text in stays.items() if text})
        (folder / listed).write_text(changed.get(listed, outcomes(half)))
    return folder


def order(data: Any, column: int) -> list[int]:
    """Returns the records of the training rows, by their ages."""
    ages = np.rint(data.x_train[:, column]).astype(int)
    known = {20 + r % 50: r for r in records("a")}
    return [known[age] for age in ages]


@pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning")
def test_statistics_are_those_of_the_benchmark(root: Path) -> None:
    write_all(root)
    data = STATISTICS.make()
    assert data.name == "physionet2012 (other copy)"
    assert (data.x_train.shape, data.x_test.shape) == ((NUM, 1561), (4, 1561))
    assert data.columns[-8:-5] == ("weight_last50_count", "age", "gender")
    which = order(data, 1554)
    np.testing.assert_array_equal(data.y_train, [r % 3 == 0 for r in which])
    np.testing.assert_array_equal(data.y_test, [r % 3 == 0 for r in records("b")])
    expected = np.stack([_benchmark(r) for r in which])
    means = np.nanmean(expected, axis=0)
    expected = np.where(np.isnan(expected), np.nan_to_num(means), expected)
    np.testing.assert_allclose(data.x_train[:, :1554], expected, rtol=1e-4, atol=1e-4)
    icu = np.eye(4)[[r % 4 for r in which]]
    np.testing.assert_array_equal(data.x_train[:, 1557:], icu)
    tall = [r for r in records("a") if r % 2 == 0]
    mean = np.mean([150 + r % 50 for r in tall])
    heights = [150 + r % 50 if r % 2 == 0 else mean for r in which]
    np.testing.assert_allclose(data.x_train[:, 1556], heights, rtol=1e-6)


def _benchmark(record: int) -> np.ndarray:
    """Returns a stay's statistics as the loader of MIMIC-III computes them."""
    rows = [row for row in stay(record) if row[2] != -1]
    values = np.full((len(rows), len(VARIABLES)), np.nan)
    for i, (_, name, value) in enumerate(rows):
        values[i, VARIABLES.index(name)] = np.float32(value)
    hours = np.array([minute / 60 for minute, _, _ in rows])
    found = twin(hours, values)
    counts = found[5::6]
    counts[np.isnan(counts)] = 0
    return found


def test_hours(root: Path) -> None:
    write_all(root)
    data = HOURLY.make()
    assert (data.x_train.shape, data.x_test.shape) == ((NUM, 48 * 81), (4, 48 * 81))
    x = data.x_train.reshape(NUM, 48, 81)
    heart, column = VARIABLES.index("HR"), "hr_hour_0"
    assert data.columns.index(column) == heart
    which = order(data, data.columns.index("age_hour_0"))
    # 80 and 90 in the first hour; 70 at the very end of the last.
    hours: dict[int, dict[int, list[float]]] = {}
    for row, record in enumerate(which):
        hours[row] = {0: []}
        for minute, name, value in stay(record):
            if name == "HR":
                hours[row].setdefault(min(minute // 60, 47), []).append(value)
        last = np.nan
        for hour in range(48):
            here = hours[row].get(hour)
            last = float(np.mean(here)) if here else last
            np.testing.assert_allclose(x[row, hour, heart], last, rtol=1e-5)
            assert x[row, hour, 37 + heart] == bool(here)
    static = x[:, :, 74:]
    np.testing.assert_array_equal(static, np.broadcast_to(static[:, :1], static.shape))
    # A variable that no training stay has is 0, and never measured.
    never = VARIABLES.index("Urine")
    assert not x[:, :, [never, 37 + never]].any()
    # Before the first measurement stands the mean of the training hours.
    weight = VARIABLES.index("Weight")
    unknown = [row for row, record in enumerate(which) if record % 3 == 0]
    mean = np.mean([60 + r for r in records("a") if r % 3])
    np.testing.assert_allclose(x[unknown, :, weight], mean, rtol=1e-5)


def test_a_feature_has_one_scale_in_all_hours(root: Path) -> None:
    write_all(root)
    raw = HOURLY.make().x_train.reshape(-1, 81).astype(float)
    data = HOURLY.replaced(scale="standard").make()
    deviation = np.where(raw.std(axis=0) > 1e-9, raw.std(axis=0), 1)
    expected = ((raw - raw.mean(axis=0)) / deviation).reshape(NUM, -1)
    np.testing.assert_allclose(data.x_train, expected, atol=2e-4)


def test_parties_hold_variables_hour_by_hour(root: Path) -> None:
    write_all(root)
    data = HOURLY.make()
    parties = Views(parties=38).make(data)
    heart = parties[VARIABLES.index("HR")]
    names = [data.columns[i] for i in heart]
    assert names[:3] == ["hr_hour_0", "hr_measured_hour_0", "hr_hour_1"]
    assert (len(names), parties[-1].size) == (96, 7 * 48)
    assert sum(part.size for part in Views(parties=4).make(data)) == 48 * 81


def test_it_is_parsed_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_all(root)
    first = STATISTICS.make()

    def never(*_: Any) -> None:
        raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr(part, "parse_stays", never)
        np.testing.assert_array_equal(STATISTICS.make().x_train, first.x_train)
        assert HOURLY.make().x_train.size
    # Other content is parsed again.
    write_all(root, **{"set-b/142600.txt": text(142_600).replace("80.0", "81.0")})
    assert (STATISTICS.make().x_test != first.x_test).any()
    assert {*STATISTICS.located_files()} == {*folder.iterdir()}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("time", "48:01,HR,80"),
        ("time", "1:00,HR,80"),
        ("parameter", "01:00,Hr,80"),
        ("value", "01:00,HR,fast"),
        ("cells", "01:00,HR"),
    ],
)
def test_damaged_stay(root: Path, name: str, line: str) -> None:
    write_all(root, **{"set-a/132503.txt": text(132_503) + line + "\n"})
    with pytest.raises(DataError, match=r"stay 132503 in .*, got ") as error:
        STATISTICS.make()
    assert repr(line) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("set-a/132501.txt", "", "got stay 132501 without a file .5 files, 6 outcome"),
        ("set-a/1.txt", text(1), "got stay 1 without an outcome"),
        (OUTCOMES_B, "", "must have a row for each stay, got none"),
        (OUTCOMES_B, "RecordID\n142600\n", "got '142600' and '' in line 2"),
        (OUTCOMES_B, outcomes("b").replace(",1\n", ",2\n"), "and '2' in line"),
        ("set-b/142601.txt", "RecordID,7\n", "got 'RecordID,7'"),
        ("set-b/142601.txt", "Time,Parameter,Value\n", "got 'nothing more'"),
    ],
)
def test_damaged_set(root: Path, name: str, content: str, says: str) -> None:
    write_all(root, **{name: content})
    with pytest.raises(DataError, match=says) as error:
        STATISTICS.make()
    assert "\n" not in str(error.value)


def test_truncated_archive(root: Path) -> None:
    path = write_all(root) / SET_A
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match="must be a whole gzip file"):
        STATISTICS.make()


def test_zip_files_are_read_as_well(root: Path) -> None:
    write_all(root)
    expected = STATISTICS.make()
    folder = root / "physionet2012"
    for name, half in ((SET_A, "a"), (SET_B, "b")):
        (folder / name).unlink()
        with zipfile.ZipFile(folder / name.replace("tar.gz", "zip"), "w") as archive:
            for one, content in entries(half).items():
                archive.writestr(one, content)
    np.testing.assert_array_equal(STATISTICS.make().x_train, expected.x_train)


def test_what_is_known_of_time_and_variables() -> None:
    assert (len(VARIABLES), len(set(VARIABLES))) == (37, 37)
    assert (stays.MINUTES["00:00"], stays.MINUTES["48:00"]) == (0, 2880)
    assert len(stays.MINUTES) == 2881
