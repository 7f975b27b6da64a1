"""The files of a capsule: scenario, results, digests, code of its author, figures."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pandas.api.types import is_numeric_dtype

from ...simulator.config.functions import MEMORY, digest_of
from ...simulator.config.study_names import RULE, is_name
from ...simulator.config.text import shown
from ...simulator.trace import StudyError, is_world
from .. import claims, tables, worlds
from ..frames import Study
from ..markup import no_formulas
from ..page.writing import yaml_of
from . import digests

SCENARIO, MANIFEST = "scenario.yaml", "manifest.json"
CLAIMS, RUNS = "results/claims.csv", "results/runs.csv"
RESULTS, MODULES, FIGURES = "results/results.csv", "modules", "figures"
README = "README.md"
TYPES = {
    ".yaml": "application/yaml",
    ".json": "application/json",
    ".csv": "text/csv",
    ".py": "text/x-python",
    ".md": "text/markdown",
    ".txt": "text/plain",
    ".png": "image/png",
    ".pdf": "application/pdf",
    ".svg": "image/svg+xml",
}


class PackedFile(NamedTuple):
    """A file of a capsule.

    Attributes:
        path: Path in the capsule, with slashes.
        content: Content.
        about: What it is, in a few words.
    """

    path: str
    content: bytes
    about: str

    @property
    def sha256(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def media_type(self) -> str:
        """Media type, by the ending."""
        return TYPES.get(Path(self.path).suffix, "application/octet-stream")


def entries(study: Study, shared: Study) -> list[PackedFile]:
    """Returns the files that a capsule of a study has, but for what describes them.

    Args:
        study: Study or timeline that is complete.
        shared: The same as the capsule has it, perhaps without what names its authors.

    Raises:
        StudyError: It is not complete or was imported from a log, a table is damaged,
            or the code of a plug-in is no longer that of the study.
    """
    manifest = study.manifest
    if not is_name(manifest["name"]):
        raise StudyError(
            f"{study.folder}: must have a name of {RULE} to be a capsule, got "
            f"{shown(manifest['name'])}; run its scenario under another name"
        )
    if "seed" not in manifest["scenario"]:
        raise StudyError(
            f"{study.folder}: must be of a scenario to be a capsule, but was imported "
            f"from a log, which nothing repeats; send the log"
        )
    if manifest["status"] != "complete":
        raise StudyError(
            f"{study.folder}: must be complete to be a capsule; continue with stalesim "
            f"resume {study.folder}"
        )
    scenario = yaml_of(shared.manifest["scenario"])
    return [
        _text(SCENARIO, scenario, "scenario, with all its entries"),
        _text(MANIFEST, json.dumps(shared.manifest, indent=1), "manifest of the study"),
        *_results(shared),
        _csv(RUNS, digests.of_runs(shared), "runs, and the SHA-256 of their traces"),
        *_modules(manifest),
        *_figures(study.folder / FIGURES),
    ]


def _results(study: Study) -> list[PackedFile]:
    if is_world(study.manifest):
        measured = worlds.report_of(study.manifest).measured(study)
        return [_csv(RESULTS, measured, "speed and staleness, by run")]
    found = tables.numbers(tables.results(study))
    return [
        _csv(RESULTS, found, "results, by group"),
        _csv(CLAIMS, claims.evaluate(study), "verdicts on the claims"),
    ]


def _carried(manifest: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Returns file and digest of the modules whose code a capsule holds.

    They are plug-ins, modules of functions that a scenario names, such as models, and
    what these import, each if it is a single file. The digest is "" where the file does
    not hold what was executed.
    """
    found: dict[str, tuple[str, str]] = {}
    for name, told in (manifest.get("modules") or {}).items():
        found |= {name: (told["file"], told["sha256"])} | told.get("imports", {})
    for name, told in (manifest.get("inputs") or {}).items():
        module, marked, function = name.partition(":")
        file, imports = Path(told.get("at", "")), told.get("imports", {})
        if not marked or module == MEMORY or file.name != f"{module}.py":
            continue
        now = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
        same = digest_of(now, function, imports) == told["sha256"]
        found |= {module: (str(file), now if same else "")} | imports
    return {name: told for name, told in found.items() if name.isidentifier()}


def _modules(manifest: Mapping[str, Any]) -> Iterator[PackedFile]:
    for name, (file, sha256) in _carried(manifest).items():
        path = Path(file)
        entry = None
        if path.is_file():
            about = f"code of {name}"
            entry = PackedFile(f"{MODULES}/{name}.py", path.read_bytes(), about)
        if entry is None or entry.sha256 != sha256:
            raise StudyError(
                f"{path} must hold the code with which the study was run, but "
                f"{'has changed' if entry else 'is gone'}; put it back"
            )
        yield entry


def left_out(
    manifest: Mapping[str, Any], packed: Collection[str]
) -> dict[str, dict[str, Any]]:
    """Returns what a study read and its capsule lacks, by name.

    Args:
        manifest: Manifest of the study.
        packed: Paths of the capsule's files.
    """
    inputs: dict[str, dict[str, Any]] = manifest.get("inputs") or {}
    code = {path.removeprefix(f"{MODULES}/").removesuffix(".py") for path in packed}
    return {
        name: told
        for name, told in inputs.items()
        if ":" not in name or name.partition(":")[0] not in code
    }


def _figures(folder: Path) -> Iterator[PackedFile]:
    """Yields the figures that were drawn, with their captions."""
    if folder.is_dir():
        for path in sorted(folder.iterdir()):
            if path.is_file() and path.suffix in TYPES:
                kind = "caption" if path.suffix == ".txt" else "figure"
                about = f"{kind} {path.stem}"
                yield PackedFile(f"{FIGURES}/{path.name}", path.read_bytes(), about)


def readme(manifest: Mapping[str, Any], found: list[PackedFile]) -> PackedFile:
    """Returns what tells a reader what the files of a capsule are."""
    version = (manifest.get("environment") or {}).get("stalesim", "")
    has_code = any(entry.path.startswith(MODULES) for entry in found)
    code = " --run-code" if has_code else ""
    listed = "\n".join(f"- `{entry.path}`: {entry.about}" for entry in found)
    inputs = "\n".join(
        f"- `{name}` (SHA-256 {told['sha256']})"
        for name, told in left_out(manifest, [entry.path for entry in found]).items()
    )
    needed = (
        f"\nIt reads files that are not part of it:\n\n{inputs}\n" if inputs else ""
    )
    caution = "\n`modules/` is code, which `--run-code` executes: read it first.\n"
    text = (
        f"# {manifest['name']}\n\n{manifest.get('question') or ''}\n\n"
        f"A study of stalesim {version} as an RO-Crate. To repeat it, and to compare:\n"
        f"\n    stalesim rerun CAPSULE{code}\n{caution if has_code else ''}{needed}\n"
        f"{listed}\n"
    )
    return _text(README, text, "what this is")


def _text(path: str, text: str, about: str) -> PackedFile:
    return PackedFile(path, text.encode(), about)


def _csv(path: str, frame: Any, about: str) -> PackedFile:
    plain = no_formulas(frame, [c for c in frame if not is_numeric_dtype(frame[c])])
    return _text(path, plain.to_csv(index=False, lineterminator="\n"), about)
