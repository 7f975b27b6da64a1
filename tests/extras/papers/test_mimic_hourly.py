"""MIMIC-III hour by hour: made stays in the benchmark's layout."""

from pathlib import Path

import numpy as np

from stalesim.simulator.extras.papers.data import clinical
from stalesim.simulator.extras.papers.data.mimic import features
from stalesim.simulator.extras.papers.data.mimic.features import VARIABLES
from stalesim.simulator.extras.papers.data.mimic.part import Mimic
from stalesim.simulator.partitions.views import Views
from tests.extras.papers.test_mimic import HEART, REFILL, write

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
