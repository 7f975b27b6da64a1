"""A study in a few words."""

import tempfile
from pathlib import Path
from typing import Any

from stalesim.simulator.files.study import study as told
from stalesim.simulator.files.study.study import Study


def run(number: int, label: str, stop: str = "time") -> dict[str, Any]:
    return {"run": number, "label": label, "stop": stop}


def study(*runs: dict[str, Any], **also: Any) -> Study:
    manifest = {"name": "small", "runs": list(runs), **also}
    return Study(Path("runs/small"), manifest, {"jobs": {}, "commits": {}})


def test_a_study_says_what_it_is_and_what_to_do_next() -> None:
    runs = [run(0, "async"), run(1, "async"), run(2, "sync"), run(3, "sync", "failed")]
    assert repr(study(*runs)) == (
        "study:   small\n"
        "folder:  runs/small\n"
        "runs:    3 of 4 runs ended, 1 failed\n"
        "groups:  async; sync\n"
        "of each: 2 replicates\n"
        "tables:  commits, jobs\n"
        f"next:    {told.NEXT}"
    )


def test_many_groups_are_counted_and_a_timeline_has_no_curves() -> None:
    runs = [run(number, f"group {number}") for number in range(40)]
    words = repr(study(*runs, kind="timeline"))
    assert "group 11; ... (40 in all)" in words
    assert "1 replicate\n" in words
    assert words.endswith(f"next:    {told.NEXT_OF_WORLD}")


def test_a_folder_that_goes_with_its_study_is_told() -> None:
    made = Path(tempfile.gettempdir()) / "stalesim-x1"
    manifest = {"name": "small", "runs": [run(0, "async")]}
    assert f"{made} (removed with this object)" in repr(Study(made, manifest, {}))


def test_names_are_no_markup_and_move_no_cursor() -> None:
    page = study(run(0, "<b>\x1b[2J</b>"))._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "\x1b" not in page
