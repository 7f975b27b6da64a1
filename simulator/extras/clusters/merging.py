"""Joins folders of one study, whose runs were made in several places."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from ....analysis.facts import Entry
from ...files import inputs
from ...files.study import COLUMNS, DISK, Study, load, parts
from ...files.study.disk import locked
from ...parts.errors import StudyError
from ...scenario.study import Run
from ...studies import planning, running
from ...studies.planning import Done, Task
from ...studies.study_folder import StudyFolder


def merge(folder: Path, *others: Path) -> Study:
    """Takes the runs that have ended in other folders of one study into the first.

    The others stay as they are. The study has the runs of the folder with most of them.

    Returns:
        The study in the first folder; complete if all of its runs have ended.

    Raises:
        UserError: a folder holds another study, another program has written it, its
            tables are damaged, or a run that has ended in two of them differs.
    """
    sources = [load(other) for other in others]
    whole = max([load(folder), *sources], key=lambda s: len(s.manifest["runs"]))
    scenario = running.scenario_of(whole.folder)
    for other in others:  # all are looked at before anything is written
        with _advised(f"leave {other} out"):
            _numbered(StudyFolder(other), running.expand(scenario))
    with locked(folder):
        mine = load(folder)
        for source in sources:
            _compare(mine, source)
        with _advised(f"merge into another folder than {folder}"):
            study, tasks = running.started(scenario, folder)
        open_ = {run["run"]: run for run in study.manifest["runs"]}
        for task in tasks:
            for source in sources:
                if (found := _copied(task, source, folder, open_)) is not None:
                    study.note(found)
                    break
        runs = study.manifest["runs"]
        if not any(run["stop"] in planning.OPEN for run in runs):
            whole = study.end()
            for name in (planning.CHECKPOINTS, planning.LOCKS):
                study.clear(name)  # what takers have left that were killed
            return whole
    return load(folder)


@contextmanager
def _advised(remedy: str) -> Iterator[None]:
    try:
        yield
    except StudyError as error:
        what, _, usual = str(error).rpartition("; ")
        if "--out" not in usual:
            raise
        raise StudyError(f"{what}; {remedy}") from None


def _numbered(folder: StudyFolder, runs: list[Run]) -> None:
    folder.read(inputs.collect(run.scenario for run in runs))
    with inputs.held(folder.inputs):
        folder.numbered(runs)
    folder.check_versions()


def _ended(study: Study) -> dict[tuple[str, str, int], Entry]:
    runs = study.manifest["runs"]
    return {
        planning.known_by(run): run for run in runs if run["stop"] not in planning.OPEN
    }


def _rows(study: Study, entry: Entry, number: int) -> Iterator[tuple[str, pa.Table]]:
    for name in COLUMNS:
        if name in entry["rows"]:
            rows = study.arrow(name, run=entry["run"])
            column = rows.schema.get_field_index("run")
            field = rows.schema.field(column)
            numbers = pa.array([number] * rows.num_rows, field.type)
            yield name, rows.set_column(column, field, numbers)


def _compare(study: Study, other: Study) -> None:
    here, there = _ended(study), _ended(other)
    for key in here.keys() & there.keys():
        number = here[key]["run"]
        rows = zip(
            _rows(study, here[key], number),
            _rows(other, there[key], number),
            strict=False,
        )
        same = here[key]["rows"] == there[key]["rows"]
        if not same or any(_bytes(one) != _bytes(two) for (_, one), (_, two) in rows):
            raise StudyError(
                f"{other.folder}: must have the rows that {study.folder} has of runs "
                f"that have ended in both, but those of {here[key]['label']!r}, "
                f"replicate {here[key]['replicate']}, differ; remove one of the two"
            )


def _bytes(rows: pa.Table) -> bytes:
    """Returns the numbers and words of rows, whatever other runs their files hold."""
    plain = {}
    for name in sorted(rows.column_names):
        cells = rows.column(name).combine_chunks()
        if cells.null_count < len(cells):  # else a column of other runs
            words = pa.types.is_dictionary(cells.type)
            plain[name] = cells.cast(pa.string()) if words else cells
    sink = pa.BufferOutputStream()
    table = pa.table(plain).combine_chunks()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


def _copied(
    task: Task, source: Study, folder: Path, open_: Mapping[int, Entry]
) -> Done | None:
    ended = _ended(source)
    mine = {run.number: ended.get(planning.known_by(run.identity)) for run in task.runs}
    pieces: dict[str, list[pa.Table]] = {}
    ends = {}
    for number, entry in mine.items():
        if entry is None:
            return None
        ends[number] = {
            key: value
            for key, value in entry.items()
            if key in planning.UNFINISHED or key not in open_[number]
        }
        for name, rows in _rows(source, entry, number):
            pieces.setdefault(name, []).append(rows)
    files = {}
    for name, tables in pieces.items():
        file = parts.file_name(planning.task_name(task.number), 0)
        seal = parts.write(DISK, folder / name / file, parts.joined(name, tables))
        files[name] = {file: seal}
    return Done(ends, files)
