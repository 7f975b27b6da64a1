"""Which tables and figures show a world that was played alone."""

from types import ModuleType

from ..simulator.files.study import StudyError
from ..simulator.parts.attached import worlds
from .facts import Entry


def report_of(manifest: Entry) -> ModuleType:
    """Returns the object of a world with `tables`, `standard`, `caption`, ...

    Raises:
        StudyError: No extra that is installed plays such worlds.
    """
    kind = manifest["kind"]
    if kind == "timeline":
        from .timelines import report  # no other world needs it

        return report
    found = {world.kind: world.report for world in worlds()}
    if kind not in found:
        known = ", ".join(["timeline", *found])
        raise StudyError(
            f"kind of the manifest must be one of {known}, got {kind!r}; install the "
            f"version of stalesim that wrote it"
        )
    return found[kind]()
