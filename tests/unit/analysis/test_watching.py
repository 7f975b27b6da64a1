"""The page of a running study: written again as long as there is more to say."""

import copy
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from stalesim.analysis.page import writing
from stalesim.simulator.files.study import Study, load, write_manifest
from stalesim.simulator.files.study.study import ATTEMPTS
from stalesim.simulator.parts.errors import StudyError
from tests.runs import tiny_study

REST = """\
replicates: 2
stop: {commits: 20}
evaluate: {every: {commits: 10}}
"""
SLEEP = "stalesim.simulator.files.study.study.time.sleep"
OF_ENDED = ("commits", "virtual_s", "elapsed_s", "rows")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Returns the manifest of a complete study, in whose folder tests are."""
    study = load(tiny_study(tmp_path_factory, REST))
    return {"folder": study.folder, **study.manifest}


def set_back(whole: dict[str, Any], ended: int | None) -> Study:
    """Writes the manifest that a study had when some of its runs had ended."""
    manifest = copy.deepcopy(whole)
    folder = manifest.pop("folder")
    if ended is not None:
        manifest.update(status="incomplete")
        for run in manifest["runs"][ended:]:
            run.update(stop="incomplete", stop_reason="the run has not ended")
            for key in OF_ENDED:
                del run[key]
        if ended == 0:
            manifest["parts"] = {}  # they are there, and nothing names them yet
    write_manifest(folder, manifest)
    return load(folder)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes each page that is written."""
    found: list[str] = []
    write = writing.write_html

    def note(study: Study, text: str, file: Any) -> None:
        found.append(text)
        write(study, text, file)

    monkeypatch.setattr(writing, "write_html", note)
    return found


def test_a_page_follows_a_study_to_its_end(
    whole: dict[str, Any], written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # At the second look nothing is new, at the last one it is complete again.
    stages = iter((0, 1, None, None))
    monkeypatch.setattr(SLEEP, lambda _: set_back(whole, next(stages)))
    study = set_back(whole, 0)
    writing.watch(study)
    none, one, both, last = written
    assert "Incomplete: 0 of 2 runs have ended" in none
    assert "No run has ended yet." in none
    rows = study.so_far()
    assert len(rows) == 2 * 3
    assert none.count("<td>base</td>") == 2 + 1  # by themselves, and as unfinished
    assert f'<td class="number">{rows["test_accuracy"].iloc[-1]:.4g}</td>' in none
    assert "Incomplete: 1 of 2 runs have ended" in one
    assert "Complete: 2 of 2 runs have ended." in both
    assert all(text.count(writing.RELOAD) == 1 for text in written[:-1])
    assert writing.RELOAD not in last
    assert (study.folder / "report.html").read_text() == last


def test_files_that_are_being_joined_are_looked_at_again(
    whole: dict[str, Any], written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study = set_back(whole, 1)
    (part,) = (study.folder / "evaluations").iterdir()
    gone, looks = part.with_suffix(".gone"), list[float]()

    def join(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 1:
            part.rename(gone)
            set_back(whole, None)
        elif back and len(looks) == 3:
            gone.rename(part)

    monkeypatch.setattr(SLEEP, join)
    back = True
    writing.watch(study)
    assert len(written) == 3  # under way, complete, and without the reload
    looks.clear()
    back = False
    try:
        with pytest.raises(StudyError, match="is missing; restore it from a copy"):
            writing.watch(set_back(whole, 1))
    finally:
        gone.rename(part)
    assert len(looks) == ATTEMPTS
    assert writing.RELOAD not in (study.folder / "report.html").read_text()


def test_a_wrong_name_is_told_at_once(
    whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SLEEP, lambda _: pytest.fail("too late"))
    with pytest.raises(StudyError, match=r"--out must be a file that ends in \.html"):
        writing.watch(set_back(whole, 1), "page.txt")


def test_the_command_is_ended_by_ctrl_c(whole: dict[str, Any], tmp_path: Path) -> None:
    folder = set_back(whole, 1).folder
    command = [sys.executable, "-m", "stalesim", "report", str(folder), "--watch"]
    with subprocess.Popen(
        [*command, "-o", "page.html"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, cwd=tmp_path, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        first = process.stdout.readline()
        for _ in range(600):
            if (tmp_path / "page.html").exists():
                break
            time.sleep(0.1)
        assert writing.RELOAD in (tmp_path / "page.html").read_text()
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    assert first == f"Watching {folder}: page.html (Ctrl-C ends it)\n"
    assert (out, errors) == (f"No longer watching {folder}\n", "")
    assert process.returncode == 0
    assert writing.RELOAD not in (tmp_path / "page.html").read_text()
