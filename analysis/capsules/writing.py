"""Capsules as zip files: the same study gives the same bytes."""

import io
import zipfile
from pathlib import Path

from ...simulator.trace import StudyError
from ..files import replaced
from ..frames import Study
from . import metadata
from .contents import PackedFile, entries
from .reading import read

NAME = "capsule.zip"
"""Name of the capsule in a study's folder."""
EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time of all files, the first that zip knows: times of packing are no content."""


def write(
    study: Study, file: str | Path | None = None, licence: str | None = None
) -> Path:
    """Writes a study as an RO-Crate, without the data that it read.

    Args:
        study: Study that is complete.
        file: Path that ends in .zip; by default `capsule.zip` in the study's folder.
        licence: SPDX identifier of the licence of scenario and results.

    Returns:
        Path of the capsule.

    Raises:
        StudyError: The study cannot be packed, or the file cannot be written.
    """
    path = study.folder / NAME if file is None else Path(file)
    if path.suffix != ".zip":
        raise StudyError(
            f"--out must be a file that ends in .zip, got {path}; rename it"
        )
    found = entries(study)
    said = metadata.describe(study.manifest, found, licence).encode()
    try:
        with replaced(path) as new:
            new.write_bytes(_packed([PackedFile(metadata.NAME, said, ""), *found]))
            read(new)  # what could not be repeated is not packed
    except OSError as error:
        raise StudyError(
            f"{path}: the capsule must be written, but {error.strerror or error}; "
            f"choose another file by --out, in a folder that exists"
        ) from error
    return path


def _packed(found: list[PackedFile]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry in found:
            about = zipfile.ZipInfo(entry.path, EPOCH)
            about.compress_type = zipfile.ZIP_DEFLATED
            about.external_attr = 0o644 << 16
            archive.writestr(about, entry.content)
    return file.getvalue()
