"""Logs with dates: the same timeline as with seconds."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from stalesim.simulator.extras.logs.reading import TIMES, read_log
from stalesim.simulator.parts.errors import DataError

SECONDS = pd.DataFrame(
    {
        "client": ["trainer 1", "trainer 2", "trainer 1", "trainer 2"],
        "round": [0, 0, 1, 1],
        "read_time": [0.0, 0.0, 366.5, 366.5],
        "arrived_time": [359.0, 365.25, 719.0, 725.0],
    }
)


def written(folder: Path, form: str, zone: str = "") -> Path:
    """Writes the log with dates of a form, from 22:22:40 on; returns its file."""
    frame, start = SECONDS.copy(), pd.Timestamp("2026-07-27 22:22:40")
    for name in ("read_time", "arrived_time"):
        dates = start + pd.to_timedelta(frame[name], unit="s")
        frame[name] = dates.dt.strftime(form) + zone
    path = folder / "log.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("zone", ["", "Z", "+02:00", "-0330"])
@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S.%f"])
def test_dates_are_seconds(tmp_path: Path, form: str, zone: str) -> None:
    log = read_log(written(tmp_path, form, zone))
    (path := tmp_path / "seconds.csv").write_text(SECONDS.to_csv(index=False))
    wanted = read_log(path)
    for name in TIMES:
        np.testing.assert_allclose(log.times[name], wanted.times[name], atol=1e-5)
    assert log.in_rounds


def test_a_parquet_file_has_dates_of_its_own(tmp_path: Path) -> None:
    frame, start = SECONDS.copy(), pd.Timestamp("2026-03-29 00:30", tz="Europe/Berlin")
    for name in ("read_time", "arrived_time"):
        frame[name] = start + pd.to_timedelta(frame[name] * 10, unit="s")  # over 2 h
    frame.to_parquet(path := tmp_path / "log.parquet")
    log = read_log(path)
    np.testing.assert_allclose(log.times["arrived_time"], SECONDS["arrived_time"] * 10)


def test_a_row_without_the_zone_of_others_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "%Y-%m-%d %H:%M:%S", "Z")
    text = path.read_text().splitlines()
    text[3] = text[3].replace("Z", "", 1)
    path.write_text("\n".join(text))
    with pytest.raises(DataError, match="line 4: must have a zone in read_time"):
        read_log(path)


def test_what_is_no_date_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "%d.%m.%Y %H:%M")
    with pytest.raises(DataError, match="number of seconds, or a date, as read_time"):
        read_log(path)
