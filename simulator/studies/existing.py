"""Studies that are there already, of the same scenario, files and program."""

from pathlib import Path

from .. import inputs
from ..config.errors import StudyError
from ..scenario.comparing import Compare, at_best
from ..scenario.scenario import Scenario
from ..scenario.study import expand
from ..trace.manifest import read_manifest
from .entries import content
from .origins import check_modules, of_this_program


def is_there(scenario: Scenario, folder: Path, *, looked: bool = False) -> bool:
    """Says whether a folder holds the study that a scenario would give here and now.

    Its runs may have ended or not. The scenario is the same in every word, the files
    that it reads by their content, and so are the program's code, its libraries and
    the machine. A search is there whatever trials it has by now.

    Args:
        scenario: Scenario of the study.
        folder: Any folder.
        looked: Whether it is to be one that was started by looks at its claims, of
            which the number of its replicates is a result.
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
