"""Who rounds wait for: against a log without that client, and by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis.timelines import tables
from stalesim.analysis.timelines.stragglers import stragglers
from stalesim.simulator.files.study import load
from stalesim.simulator.parts.errors import StudyError
from tests.commands import invoked

NUM_CLIENTS, ROUNDS, PAUSE = 8, 200, 0.02


def imported(seconds: np.ndarray, folder: Path) -> pd.DataFrame:
    """Returns the stragglers of rounds in which clients take `seconds`, `[R, K]`."""
    starts = np.concatenate([[0], np.cumsum(seconds.max(1) + PAUSE)[:-1]])
    number, client = np.divmod(np.arange(seconds.size), seconds.shape[1])
    log = pd.DataFrame({"client": client, "round": number})
    log["read_time"] = starts[number]
    log["arrived_time"] = log["read_time"] + seconds.reshape(-1)
    path = folder / "log.csv"
    log.to_csv(path, index=False)
    invoked("log", "import", path, "-o", folder / "log", "--no-plots")
    return stragglers(load(folder / "log"))


def durations() -> np.ndarray:
    """Returns times of eight ranks: rank 5 is slow, rank 0 validates at times."""
    seconds = 1.3 + 0.1 * np.random.default_rng(7).random((ROUNDS, NUM_CLIENTS))
    seconds[:, 5] *= 1.3
    seconds[::20, 0] += 10
    return seconds


def test_a_round_without_a_client_is_that_of_a_log_without_it(tmp_path: Path) -> None:
    seconds = durations()
    found = imported(seconds, tmp_path)
    np.testing.assert_allclose(found["last"], [0.05, 0, 0, 0, 0, 0.95, 0, 0])
    for client in range(NUM_CLIENTS):
        (place := tmp_path / str(client)).mkdir()
        rest = imported(np.delete(seconds, client, 1), place)["round_s"][0]
        without = found["round_s"][client] - found["adds_s"][client]
        # The last round of a log has no pause after it, so that rounds differ by that.
        assert without == pytest.approx(rest, abs=PAUSE / ROUNDS)


def test_the_table_of_a_timeline_names_who_adds_most(tmp_path: Path) -> None:
    imported(durations(), tmp_path)
    study = load(tmp_path / "log")
    ((title, table),) = (each for each in tables(study) if "a round takes" in each[0])
    assert title == "log: a round takes 2.23 s; without client 1 (log: 0) 1.76 s"
    assert table["client"].tolist() == ["1 (log: 0)", "6 (log: 5)"]
    assert table["last in"].tolist() == ["5.0%", "95.0%"]


def test_nobody_is_waited_for_without_rounds(tmp_path: Path) -> None:
    world = tmp_path / "world.yaml"
    world.write_text(
        "name: w\nclients: {number: 4, compute: {law: expon}}\n"
        "protocol: {kind: asynchronous}\nstop: {commits: 50}\n"
    )
    invoked("timeline", world, "-o", tmp_path / "w", "--no-plots")
    study = load(tmp_path / "w")
    with pytest.raises(StudyError, match="need rounds that wait for everyone"):
        stragglers(study)
    assert not any("a round takes" in title for title, _ in tables(study))
