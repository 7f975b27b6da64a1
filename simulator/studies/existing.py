"""Studies that are there already: recognised as the same one, or removed."""

from pathlib import Path

from ..files import inputs
from ..files.study import COLUMNS, DISK, Disk
from ..files.study.disk import LOCK, PARTIAL, explained, locked
from ..files.study.manifest import NAME, read_manifest
from ..files.study.study import journal_session
from ..parts.attached import extras
from ..parts.errors import StudyError, shown
from ..scenario.scenario import Scenario
from ..scenario.study import expand
from ..scenario.tuning import Compare, at_best
from .origins import check_modules, of_this_program
from .planning import CHECKPOINTS, CLAIMS, DATA, LOCKS, TUNING, content

OURS = {LOCK, NAME, DATA, CHECKPOINTS, LOCKS, TUNING, *COLUMNS}
"""Names of the files in the folder of a study while it is run."""
OUTPUTS = {"figures", "report.html"}
"""Names of the files of commands in the folder of a study; extras add theirs."""


def is_there(scenario: Scenario, folder: Path, *, looked: bool = False) -> bool:
    """Returns whether a folder has the study that a scenario would give here and now.

    Its runs may have ended or not. The scenario is the same in every word, the files
    that it reads by their content, and so are the program's code, its libraries and
    the machine. A search is there whatever trials it has by now.

    Args:
        scenario: Scenario of the study.
        folder: Any folder.
        looked: Whether it must be a study with interim analyses, whose number of
            replicates is a result.
    """
    try:
        manifest = read_manifest(folder)
    except StudyError:
        return False
    if looked:
        known = manifest["scenario"]
        if not known.get("looks"):
            return False
        now = {"looks": tuple(known["looks"]), "replicates": known["replicates"]}
        scenario = scenario.model_copy(update=now)
    if scenario.tune is not None and not scenario.sweep:
        swept = manifest["scenario"].get("sweep", {})
        scenario = scenario.model_copy(update={"sweep": swept})
    compared = manifest["scenario"].get("compare") or {}
    if scenario.compare is not None and compared.get("found"):
        found = Compare.model_validate(compared).found or {}
        if {*found} != {*scenario.variants}:
            return False
        scenario = at_best(scenario, found)
    if manifest["scenario"] != scenario.model_dump(mode="json"):
        return False
    runs = expand(scenario)
    read = inputs.collect(run.scenario for run in runs)
    if manifest["environment"] != of_this_program(read.libraries)["environment"]:
        return False
    try:
        check_modules(folder, manifest, read)
    except StudyError:
        return False
    with inputs.held(read):
        mine = [content(run) for run in runs]
    if scenario.compare is not None and not manifest["runs"]:
        return True  # it is still tuned
    return [entry.get("content") for entry in manifest["runs"]] == mine


def clear(folder: Path, disk: Disk = DISK) -> None:
    """Removes the study in a folder, and its products; nothing without one.

    The manifest goes last: what a kill leaves is still a study, to be overwritten.

    Raises:
        StudyError: there is anything else in the folder, which then stays as it is.
    """
    if not disk.names(folder):
        return
    others = [name for name in disk.names(folder) if not _is_ours(name)]
    if others or not disk.exists(folder / NAME):
        what = f"{shown(others[0])}, which is not of a study" if others else "none"
        raise StudyError(
            f"{folder}: must hold a study and nothing else to be overwritten, but "
            f"holds {what}; remove it, or choose another folder by --out"
        )
    with locked(folder), explained(folder):
        for name in sorted(disk.names(folder), key=lambda name: name == NAME):
            if name == LOCK:
                continue
            if (folder / name).is_dir() and not (folder / name).is_symlink():
                disk.remove_folder(folder / name)
            else:
                disk.remove(folder / name)


def _is_ours(name: str) -> bool:
    if name in OURS | OUTPUTS or journal_session(name) is not None:
        return True
    of_extras = (each for extra in extras().values() for each in extra.outputs)
    return name.startswith((CLAIMS, *of_extras)) or name.endswith(PARTIAL)
