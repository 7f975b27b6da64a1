"""MIMIC-III in the benchmark's layout: made stays, 714 statistics."""

import gzip
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import skew

from stalesim.simulator.catalogue.partitions.vertical import Vertical, Views
from stalesim.simulator.extras.papers.data import clinical
from stalesim.simulator.extras.papers.data.mimic import features
from stalesim.simulator.extras.papers.data.mimic.features import (
    STATISTICS as COLUMNS,
)
from stalesim.simulator.extras.papers.data.mimic.features import VARIABLES, category
from stalesim.simulator.extras.papers.data.mimic.part import Mimic
from stalesim.simulator.parts.errors import DataError

CSV = Mimic(scale="raw")
HEART, EYE, REFILL = 8, 3, 0


def stay(number: int) -> str:
    """Returns a file: the heart rate each hour, eye opening twice, height never."""
    rows = []
    for hour in range(10):
        cells = [""] * len(VARIABLES)
        cells[HEART] = f"{60 + (number * 7 + hour * hour) % 31}.5"
        if hour in (0, 9):
            cells[EYE] = "4 Spontaneously" if hour else "To Pain"
            cells[REFILL] = "0.0"
        rows.append(f"{hour + 0.25}," + ",".join(cells))
    return "\n".join(["Hours," + ",".join(VARIABLES), *rows]) + "\n"


def write(root: Path, num_train: int = 12, num_test: int = 4) -> Path:
    number = 0
    for half, num in (("train", num_train), ("test", num_test)):
        (root / half).mkdir(parents=True)
        names = []
        for _ in range(num):
            number += 1
            names.append(f"{number}_episode1_timeseries.csv")
            (root / half / names[-1]).write_text(stay(number))
        lines = [f"{name},{int(i % 3 == 0)}" for i, name in enumerate(names)]
        (root / half / "listfile.csv").write_text("\n".join(["stay,y_true", *lines]))
    return root


def split(
    values: dict[float, float], start: float, end: float
) -> Iterator[dict[float, float]]:
    """Yields the measurements of each sub-period, in the benchmark's order."""
    span = end - start
    for low, high in [
        (start, end),
        *((start, start + span * share) for share in (0.1, 0.25, 0.5)),
        *((end - span * share, end) for share in (0.1, 0.25, 0.5)),
    ]:
        yield {t: v for t, v in values.items() if low - 1e-6 < t < high + 1e-6}


def twin(hours: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Returns the statistics, variable by variable and sub-period by sub-period."""
    found = []
    for column in values.T:
        known = {t: v for t, v in zip(hours, column, strict=True) if not np.isnan(v)}
        if not known:
            found += [np.nan] * 42
            continue
        for part in split(known, min(known), max(known)):
            v = np.array(list(part.values()))
            found += [v.min(), v.max(), v.mean(), v.std()]
            found += [skew(v) if v.std() > 1e-9 else 0.0, len(v)]
    return np.array(found)


@pytest.mark.parametrize("seed", range(4))
def test_statistics_equal_the_slow_twin(seed: int) -> None:
    draw = np.random.default_rng(seed)
    hours = np.sort(draw.uniform(0, 48, 40))
    values = draw.gamma(2, 30, (40, 17))
    values[draw.random((40, 17)) < 0.6] = np.nan
    values[:, 1] = np.nan
    values[1:, 2] = np.nan
    values[:, 3] = 7.3
    np.testing.assert_allclose(
        features.statistics(hours, values), twin(hours, values), atol=1e-9
    )


def test_columns_stand_variable_by_variable() -> None:
    assert len(COLUMNS) == 17 * 7 * 6 == len(set(COLUMNS))
    assert COLUMNS[0] == "capillary_refill_rate_full_min"
    assert COLUMNS[8 * 42 + 7] == "heart_rate_first10_max"
    assert COLUMNS[-1] == "ph_last50_count"


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("4 Spontaneously", 4),
        ("Spontaneously", 4),
        ("1.0 ET/Trach", 1),
        ("No Response-ETT", 1),
        ("None", 0),
        ("Obeys Commands", 6),
        ("15", 15),
        ("1.0", 1),
    ],
)
def test_categories(cell: str, number: float) -> None:
    assert category(cell) == number


@pytest.mark.parametrize("cell", ["drowsy", "nan", "4x", "-"])
def test_no_category(cell: str) -> None:
    assert np.isnan(category(cell))


@pytest.mark.parametrize(
    "place", ["in-hospital-mortality", "mimic/in-hospital-mortality", "m3/data/ihm"]
)
def test_reads(root: Path, place: str) -> None:
    write(root / place)
    data = CSV.make()
    assert (data.name, data.num_classes, data.columns) == ("mimic", 2, COLUMNS)
    assert (data.x_train.shape, data.x_test.shape) == ((12, 714), (4, 714))
    assert data.y_train.sum() == 4
    np.testing.assert_array_equal(data.y_test, [1, 0, 0, 1])
    column = dict(zip(COLUMNS, data.x_test.T, strict=True))
    np.testing.assert_array_equal(column["heart_rate_full_count"], 10)
    np.testing.assert_array_equal(column["heart_rate_last50_count"], 5)
    np.testing.assert_array_equal(column["heart_rate_first10_count"], 1)
    eye = "glascow_coma_scale_eye_opening"
    np.testing.assert_array_equal(column[f"{eye}_full_mean"], 3)
    np.testing.assert_array_equal(column[f"{eye}_first50_max"], 2)
    np.testing.assert_array_equal(column[f"{eye}_last10_min"], 4)
    # Never measured in any training stay.
    np.testing.assert_array_equal(column["height_full_mean"], 0)


def test_missing_statistics_are_means_of_training_rows(root: Path) -> None:
    folder = write(root / "in-hospital-mortality")
    lines = stay(1).splitlines()
    lines[3] = lines[3].rsplit(",", 2)[0] + ",81.5 ,"
    (folder / "train" / "1_episode1_timeseries.csv").write_text("\n".join(lines))
    lines[3] = lines[3].replace("81.5", "90")
    (folder / "train" / "2_episode1_timeseries.csv").write_text("\n".join(lines))
    lines[3] = lines[3].replace("90", "300")
    (folder / "test" / "13_episode1_timeseries.csv").write_text("\n".join(lines))
    data = CSV.make()
    weight = COLUMNS.index("weight_full_mean")
    assert sorted(data.x_train[:, weight]) == [81.5, *[85.75] * 10, 90]
    np.testing.assert_array_equal(data.x_test[:, weight], [300, *[85.75] * 3])
    assert (data.x_train[:, COLUMNS.index("weight_full_count")] == 1).all()
    scaled = CSV.replaced(scale="standard").make()
    np.testing.assert_allclose(scaled.x_train.mean(axis=0), 0, atol=1e-6)
    assert np.isfinite(scaled.x_test).all()
    assert Mimic().scale == "standard"


def test_columns_may_stand_in_another_order(root: Path) -> None:
    folder = write(root / "in-hospital-mortality")
    before = CSV.make()
    for path in folder.glob("*/*_timeseries.csv"):
        rows = [line.split(",") for line in path.read_text().splitlines()]
        rows[0] = [name.upper() if name != "Hours" else name for name in rows[0]]
        turned = [",".join([row[0], *row[:0:-1]]) for row in rows]
        path.write_bytes(gzip.compress("\r\n".join(turned).encode()))
    np.testing.assert_array_equal(CSV.make().x_train, before.x_train)


def test_validation_stays_are_training_rows_once(root: Path) -> None:
    folder = write(root / "in-hospital-mortality")
    whole = CSV.make()
    lines = (folder / "train/listfile.csv").read_text().splitlines()
    (folder / "val_listfile.csv").write_text("\n".join([lines[0], *lines[9:]]))
    (folder / "train_listfile.csv").write_text("\n".join(lines[:9]))
    np.testing.assert_array_equal(CSV.make().x_train, whole.x_train)
    (folder / "train/listfile.csv").unlink()
    np.testing.assert_array_equal(CSV.make().x_train, whole.x_train)
    (folder / "val_listfile.csv").write_text("stay,y_true\n1_episode1_timeseries.csv,0")
    with pytest.raises(
        DataError, match=r"val_.* the class 1 for 1_.*, got 0 in line 2"
    ):
        CSV.make()


def test_lists_of_other_tasks_are_none_of_ours(root: Path) -> None:
    folder = write(root / "decompensation")
    path = folder / "train/listfile.csv"
    header = "stay,period_length,y_true"
    for half in ("train", "test"):
        path = folder / half / "listfile.csv"
        path.write_text(path.read_text().replace("stay,y_true", header))
    with pytest.raises(DataError, match=r"^mimic must be in the data folder"):
        CSV.make()


# F-09: 8 and 9 variables, or 4, 4, 3, 3 and 3; the label party is the last.
TWO = {"a": ("0-335",), "b": ("336-713",)}
FIVE = {
    "a": ("0-167",),
    "b": ("168-335",),
    "c": ("336-461",),
    "d": ("462-587",),
    "e": ("588-713",),
}


@pytest.mark.parametrize(
    ("partition", "variables"),
    [
        (Vertical(groups=TWO), [8, 9]),
        (Vertical(groups=FIVE), [4, 4, 3, 3, 3]),
        (Vertical(parties=17), [1] * 17),
    ],
)
def test_parties_hold_whole_variables(
    root: Path, partition: Vertical, variables: list[int]
) -> None:
    write(root / "in-hospital-mortality")
    data = Mimic().make()
    parts = partition.make(data)
    owners = [
        {re.split("_(?:full|first|last)", data.columns[c])[0] for c in p} for p in parts
    ]
    assert [len(owner) for owner in owners] == variables
    assert sum(part.size for part in parts) == 714


def test_no_jax_simpy_or_pandas_is_imported() -> None:
    names = ("mimic.part", "nus_wide", "credit", "parkinson", "usps")
    home = "stalesim.simulator.extras.papers.data"
    code = "".join(f"import {home}.{name}\n" for name in names)
    code += "import sys\nassert not {'jax', 'simpy', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


HOURLY = Mimic(scale="raw", features="hourly")


def test_hours_have_means() -> None:
    values = np.full((4, 17), np.nan)
    values[:, HEART] = 60, 80, 100, 40
    found = features.hourly(np.array([0.2, 0.9, 5.0, 48.0]), values)
    assert found.shape == (48, 17)
    assert found[[0, 5, 47], HEART].tolist() == [70, 100, 40]
    assert np.isnan(found).sum() == 48 * 17 - 3


def test_rows_are_hours_of_values_and_masks(root: Path) -> None:
    write(root / "in-hospital-mortality")
    data = HOURLY.make()
    assert (data.name, data.x_train.shape) == ("mimic", (12, 48 * 34))
    frames = data.x_test.reshape(-1, 48, 34)
    heart, mask = frames[:, :, HEART], frames[:, :, 17 + HEART]
    # Measured in hours 0 to 9, carried forward from then on.
    assert mask.tolist() == [[1.0] * 10 + [0.0] * 38] * 4
    assert (heart[:, 9:] == heart[:, 9:10]).all()
    assert (heart[:, :10] % 1 == 0.5).all()
    assert (frames[:, :, VARIABLES.index("Height")] == 0).all()
    assert frames[:, :, 17 + REFILL].sum() == 8
    parts = Views(parties=4).make(data)
    assert [len(part) for part in parts] == [48 * 2 * n for n in (5, 4, 4, 4)]
    assert data.columns[parts[1][0]] == f"{features.NAMES[5]}_hour_0"


def test_before_the_first_measurement_there_is_the_training_rows_mean() -> None:
    x = np.full((2, 48, 17), np.nan, np.float32)
    x[0, 3:5, HEART] = 50, 70
    x[1, 1, HEART] = 90
    usual = clinical.typical(x)
    assert usual[HEART] == 70
    assert usual.sum() == 70
    rows = features.sequences(x, usual).reshape(2, 48, 34)
    assert rows[0, :6, HEART].tolist() == [70, 70, 70, 50, 70, 70]
    assert rows[0, :6, 17 + HEART].tolist() == [0, 0, 0, 1, 1, 0]
