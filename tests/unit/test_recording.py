"""What a recording says while it is made, and of what it has made."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stalesim.simulator.files.study import load
from stalesim.simulator.files.timeline import Chunk
from stalesim.simulator.parts.errors import ScenarioError
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.studies import saved
from stalesim.simulator.studies.saved import record
from stalesim.simulator.timelines.simulated import SimulatedTimeline

TREE: dict[str, Any] = {
    "name": "w",
    "clients": {"number": 3, "compute": {"law": "constant", "value": [1, 2, 3.5]}},
    "protocol": {"kind": "asynchronous"},
}


@pytest.mark.parametrize(
    ("stop", "fractions"),
    [
        ({"commits": 8}, [0.25, 0.5, 0.75, 1.0]),
        # Client by client 1, 2, 3, 4 | 2, 4 | 3.5: in order 1 2 2 3 3.5 4 4.
        ({"time": 4}, [2 / 4, 3 / 4, 4 / 4, 4 / 4]),
        ({"time": 1000, "commits": 8}, [0.25, 0.5, 0.75, 1.0]),
    ],
)
def test_progress_is_the_part_of_all_runs_that_is_played(
    stop: dict[str, Any],
    fractions: list[float],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(saved, "PAIRS", 2)
    heard: list[float] = []
    study = WorldScenario.model_validate({**TREE, "stop": stop, "replicates": 2})
    record(study, tmp_path, heard.append)
    halves = [*(f / 2 for f in fractions), *((1 + f) / 2 for f in fractions)]
    np.testing.assert_allclose(heard, halves)


def test_the_journal_gets_a_line_for_parts_and_none_for_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "PAIRS", 2)
    monkeypatch.setattr("stalesim.simulator.files.study.writing.PART_ROWS", 40)
    lines: list[str] = []
    append = saved.DISK.append

    def noting(path: Path, data: bytes) -> None:
        lines.append(path.name)
        append(path, data)

    monkeypatch.setattr(saved.DISK, "append", noting)
    study = WorldScenario.model_validate({**TREE, "stop": {"commits": 100}})
    done = record(study, tmp_path)
    assert set(lines) == {"journal-1.log"}
    assert done.manifest["session"] == 2  # a line of the first counts no more
    # 100 rows in 50 chunks: after 40 and 80 rows, and jobs, which are as many and end
    # with the rows, and at the end; then rows and jobs are joined.
    assert 3 <= len(lines) <= 9


def test_a_world_that_fails_on_its_way_leaves_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "PAIRS", 2)
    monkeypatch.setattr("stalesim.simulator.files.study.writing.PART_ROWS", 40)
    chunks = SimulatedTimeline.chunks

    def failing(played: SimulatedTimeline, num_rows: int) -> Iterator[Chunk]:
        for number, chunk in enumerate(chunks(played, num_rows)):
            if number == fails:
                raise ScenarioError("law must give durations")
            yield chunk

    monkeypatch.setattr(SimulatedTimeline, "chunks", failing)
    study = WorldScenario.model_validate({**TREE, "stop": {"commits": 100}})
    for fails in (0, 45):
        folder = tmp_path / str(fails)
        with pytest.raises(ScenarioError, match="must give durations"):
            record(study, folder)
        if not fails:
            assert not folder.exists()
            continue
        left = load(folder)
        assert left.manifest["status"] == "incomplete"
        written = sum(f.stat().st_size for f in (folder / "rows").iterdir())
        assert written > 0
