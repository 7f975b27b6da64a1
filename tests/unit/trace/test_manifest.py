"""Manifests of strangers, with a right checksum: what a reader needs, or one line."""

from pathlib import Path
from typing import Any

import pytest

from stalesim.simulator.config import json_text
from stalesim.simulator.config.errors import StudyError
from stalesim.simulator.trace.manifest import parsed, read_manifest, write_manifest

RUN = {
    "run": 0,
    "label": "base",
    "variant": "base",
    "parameters": {},
    "replicate": 0,
    "seed": 1,
    "stop": "time",
    "stop_reason": "",
    "scenario": {},
}
MANIFEST: dict[str, Any] = {
    "name": "small",
    "status": "complete",
    "session": 1,
    "scenario": {"replicates": 1, "looks": [3, 5]},
    "runs": [RUN],
    "parts": {"evaluations": {"part-all-00000.parquet": [10, 20]}},
    "environment": {},
}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a path": (
        {"parts": {"rows": {"../../../etc/passwd": [1, 2]}}},
        r"parts\.rows\.\.\./\.\./\.\./etc/passwd\.\[key\]: String should match",
    ),
    "no seal": (
        {"parts": {"rows": {"part-all-00000.parquet": [1]}}},
        r"parts\.rows.*: List should have at least 2 items",
    ),
    "words for a number": (
        {"scenario": {"replicates": "many"}},
        r"scenario\.replicates: Input should be a valid integer",
    ),
    "looks at nothing": (
        {"scenario": {"looks": [0, 0]}},
        r"scenario\.looks\.0: Input should be greater than or equal to 1",
    ),
    "looks that stand": ({"scenario": {"looks": [5, 5]}}, r"looks: .* must rise"),
    "metrics that are a word": (
        {"metrics": "loss"},
        "metrics: Input should be a valid dictionary",
    ),
    "a list of inputs": ({"inputs": []}, "inputs: Input should be a valid dictionary"),
}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_manifest(tmp_path, MANIFEST)
    assert read_manifest(tmp_path)["parts"] == MANIFEST["parts"]


@pytest.mark.parametrize("case", WRONG)
def test_another_shape_is_one_line(case: str, tmp_path: Path) -> None:
    changes, said = WRONG[case]
    write_manifest(tmp_path, MANIFEST | changes)
    with pytest.raises(StudyError, match=said) as error:
        read_manifest(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"[" * 200_000, "nested too deep"),
        (b"\xff", "is not JSON"),
        (b"[" + b"[]," * 200_000 + b"0]", "has some 400,001 values, where 300,000 are"),
    ],
)
def test_a_text_that_is_no_json(text: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        json_text.loads(text, 300_000)


def test_a_manifest_that_is_no_json_is_one_line() -> None:
    with pytest.raises(
        StudyError, match="must be as stalesim wrote it, but is not JSON"
    ):
        parsed(Path("manifest.json"), b"[" * 200_000)
