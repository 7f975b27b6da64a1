"""The files of a capsule: scenario, results, digests, code of its author, figures."""

import hashlib
import json
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ....analysis import claims, tables, worlds
from ....analysis.facts import Entry
from ....analysis.frames import Study, runs
from ....analysis.markup import no_formulas, yaml_of
from ...files.study import COLUMNS, StudyError, is_world
from ...parts.base import tag
from ...parts.catalogue import classes
from ...parts.errors import shown
from ...parts.functions import MEMORY, digest_of
from ...problem.data.parts import Data
from ...scenario.setting import NAME_RULE, is_study_name

SCENARIO, MANIFEST = "scenario.yaml", "manifest.json"
CLAIMS, RUNS = "results/claims.csv", "results/runs.csv"
RESULTS, MODULES, FIGURES = "results/results.csv", "modules", "figures"
README = "README.md"
DRAWN = (".png", ".pdf", ".svg", ".txt")
"""Endings of figures, and of their captions."""


class PackedFile(NamedTuple):
    """A file of a capsule."""

    path: str
    content: bytes
    about: str


def entries(study: Study, shared: Study) -> list[PackedFile]:
    """Returns the files of a study's capsule, except for their description.

    Args:
        study: Study or timeline that is complete.
        shared: The study as in the capsule, optionally without its authors' names.

    Raises:
        StudyError: It is not complete or was imported from a log, a table is damaged,
            or the code of a plug-in differs from the study's.
    """
    manifest = study.manifest
    if not is_study_name(manifest["name"]):
        raise StudyError(
            f"{study.folder}: must have a name of {NAME_RULE} to be a capsule, got "
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
        _csv(RUNS, digests(shared), "runs, and the SHA-256 of their traces"),
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


def _carried(manifest: Entry) -> dict[str, tuple[str, str]]:
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


def _modules(manifest: Entry) -> Iterator[PackedFile]:
    for name, (file, sha256) in _carried(manifest).items():
        path = Path(file)
        code = path.read_bytes() if path.is_file() else None
        if code is None or hashlib.sha256(code).hexdigest() != sha256:
            raise StudyError(
                f"{path} must hold the code with which the study was run, but "
                f"{'is gone' if code is None else 'has changed'}; put it back"
            )
        yield PackedFile(f"{MODULES}/{name}.py", code, f"code of {name}")


def digests(study: Study) -> pd.DataFrame:
    """Returns the identity of every run of a study, and the digest of its records.

    Real seconds are in no table, so that the same run on the same machine has the same
    digest.

    Returns:
        Columns run, group, replicate, seed, stop, sha256.

    Raises:
        StudyError: A table is damaged, or no run has ended.
    """
    table = runs(study)
    found = {run: hashlib.sha256() for run in table["run"]}
    for name in sorted(study.manifest.get("parts", {})):
        for run, rows in study.table(name).groupby("run", sort=True):
            if run in found:
                _add(found[run].update, name, rows)
    kept = table[["run", "group", "replicate", "seed", "stop"]]
    return kept.assign(sha256=[found[run].hexdigest() for run in table["run"]])


def _add(add: Callable[[bytes], None], name: str, rows: pd.DataFrame) -> None:
    for column in sorted(set(map(str, rows.columns)) - {"run"}):
        values, of = rows[column], COLUMNS[name].get(column)
        if of is not None and of.none is not None:  # as in the files
            values = values.fillna(of.none).astype(np.dtype(of.dtype))
        add(f"{name}.{column}:{len(values)}:".encode())
        if pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
            numbers = values.to_numpy()
            if numbers.dtype == object:
                numbers = values.to_numpy(np.float64, na_value=np.nan)
            add(numbers.astype(numbers.dtype.newbyteorder("<")).tobytes())
        else:
            cells = zip(values, values.isna(), strict=True)
            plain = [None if gone else _plain(value) for value, gone in cells]
            add(json.dumps(plain).encode())


def _plain(value: object) -> list[object] | str:
    return value.tolist() if isinstance(value, np.ndarray) else str(value)


def left_out(manifest: Entry, packed: Collection[str]) -> dict[str, Entry]:
    """Returns the inputs of a study that its capsule lacks, by name."""
    code = {path.removeprefix(f"{MODULES}/").removesuffix(".py") for path in packed}
    return {
        name: told
        for name, told in (manifest.get("inputs") or {}).items()
        if ":" not in name or name.partition(":")[0] not in code
    }


def _figures(folder: Path) -> Iterator[PackedFile]:
    if folder.is_dir():
        for path in sorted(folder.iterdir()):
            if path.is_file() and path.suffix in DRAWN:
                kind = "caption" if path.suffix == ".txt" else "figure"
                about = f"{kind} {path.stem}"
                yield PackedFile(f"{FIGURES}/{path.name}", path.read_bytes(), about)


def readme(manifest: Entry, found: list[PackedFile], licence: str | None) -> PackedFile:
    """Returns the description of a capsule's files, and their licence."""
    version = (manifest.get("environment") or {}).get("stalesim", "")
    has_code = any(entry.path.startswith(MODULES) for entry in found)
    code = " --run-code" if has_code else ""
    caution = "\n`modules/` is code, which `--run-code` executes: read it first.\n"
    read = [f"- {line}" for line in _data_sets(manifest)] + [
        f"- `{name}` (SHA-256 {told['sha256']})"
        for name, told in left_out(manifest, [entry.path for entry in found]).items()
    ]
    needed = "\nIt reads data that are not part of it:\n\n{}\n".format("\n".join(read))
    listed = "\n".join(f"- `{entry.path}`: {entry.about}" for entry in found)
    text = (
        f"# {manifest['name']}\n\n{manifest.get('question') or ''}\n\n"
        f"A study of stalesim {version}. Licence of scenario and results: "
        f"{licence or 'none is stated'}. To repeat it, and to compare:\n"
        f"\n    stalesim rerun CAPSULE{code}\n{caution if has_code else ''}"
        f"{needed if read else ''}\n{listed}\n"
    )
    return _text(README, text, "what this is")


def _data_sets(manifest: Entry) -> Iterator[str]:
    known = {tag(part): part.published for part in classes("data", Data)}
    problems = [(run.get("scenario") or {}).get("problem") for run in manifest["runs"]]
    kinds = {(problem or {}).get("data", {}).get("kind") for problem in problems}
    for kind in sorted(filter(None, kinds)):
        if (published := known.get(kind)) is not None:
            yield f"{kind}: {published.origin}; licence: {published.licence}"


def _text(path: str, text: str, about: str) -> PackedFile:
    return PackedFile(path, text.encode(), about)


def _csv(path: str, frame: pd.DataFrame, about: str) -> PackedFile:
    words = frame.select_dtypes(exclude="number").columns
    plain = no_formulas(frame, map(str, words))
    return _text(path, plain.to_csv(index=False, lineterminator="\n"), about)
