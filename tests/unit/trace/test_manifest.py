"""Manifests of strangers, with a right checksum: what a reader needs, or one line."""

from pathlib import Path

import pytest

from stalesim.simulator.files.study.manifest import (
    parsed,
    read_manifest,
    write_manifest,
)
from stalesim.simulator.parts import json_text
from stalesim.simulator.parts.errors import StudyError
from tests.support import table

TABLE = table(__file__)
MANIFEST, WRONG = TABLE["good"], TABLE["bad"]


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
