"""Capsules as zip files: the same study gives the same bytes."""

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

from ...simulator.trace import StudyError
from ..files import replaced, written
from ..frames import Study
from . import metadata
from .anonymous import check, identities, nameless, without_hidden_texts
from .contents import PackedFile, entries, readme
from .reading import read

NAME = "capsule.zip"
"""Name of the capsule in a study's folder."""
EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time of all files, the first that zip knows: times of packing are no content."""


def write(
    study: Study,
    file: str | Path | None = None,
    licence: str | None = None,
    *,
    anonymous: bool = False,
    allowed: Sequence[str] = (),
) -> Path:
    """Writes a study as an RO-Crate, without the data that it read.

    Args:
        study: Study that is complete.
        file: Path that ends in .zip; by default `capsule.zip` in the study's folder.
        licence: SPDX identifier of the licence of scenario and results.
        anonymous: Whether commit, command, folders, and figures whose texts cannot be
            searched are left out, and a capsule that names an author is refused.
        allowed: Names that are no author's.

    Returns:
        Path of the capsule.

    Raises:
        StudyError: The study cannot be packed, names an author where it must not, or
            the file cannot be written.
    """
    path = study.folder / NAME if file is None else Path(file)
    if path.suffix != ".zip":
        raise StudyError(
            f"--out must be a file that ends in .zip, got {path}; rename it"
        )
    told = nameless(study) if anonymous else study
    found = entries(study, told)
    if anonymous:
        found = [*without_hidden_texts(found)]
    found.append(readme(told.manifest, found))
    said = metadata.describe(told.manifest, found, licence).encode()
    found.insert(0, PackedFile(metadata.NAME, said, ""))
    if anonymous:
        check(found, identities(study, allowed))
    remedy = "choose another file by --out, in a folder that exists"
    with written(path, "the capsule", remedy), replaced(path) as new:
        new.write_bytes(_packed(found))
        read(new)  # what could not be repeated is not packed
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
