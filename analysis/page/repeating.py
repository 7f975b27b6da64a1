"""How to repeat a study: commands, their requirements, and warnings."""

import re
import shlex
from collections.abc import Iterator, Mapping

from ...simulator.files.study import is_world
from ..facts import Entry
from .words import Rows
from .world import imported

PINNED = ("jax", "jaxlib", "numpy", "scipy", "simpy", "equinox")
"""Libraries whose version may play a part in the last digits."""
PLUGIN = "--plugin"
"""Option that imports code."""
COMMIT = re.compile(r"[0-9a-f]{6,64}")
DIRTY = (
    "The program had local changes that are not in its git commit: these commands run "
    "another program than that of the study, and may give other numbers."
)
CODE = (
    "--plugin executes Python code with all rights of the user who calls it. The "
    "code is not on this page: get it from people you trust, and read it before."
)
QUOTED = (
    "The study itself was started, and perhaps continued, by these commands, quoted "
    "from its manifest as its maker left them:"
)


def commands(manifest: Entry, name: str) -> Iterator[str]:
    """Yields the commands that repeat a study, one at a time."""
    environment = manifest.get("environment") or {}
    commit = str(manifest.get("commit"))
    if COMMIT.fullmatch(commit):
        yield f"git checkout {commit}"
    pins = [f"{each}=={environment[each]}" for each in PINNED if environment.get(each)]
    yield shlex.join(["pip", "install", ".", *pins])
    if imported(manifest["scenario"]):
        return  # of a log: the command that read it is quoted
    again = f"{manifest['name']}-again"
    verb = "timeline" if is_world(manifest) else "run"
    imports = _imports(manifest, verb)
    yield shlex.join(["stalesim", *imports, verb, name, "-o", again])
    if verb == "run":
        yield shlex.join(["stalesim", "check", again])
    yield shlex.join(["stalesim", "report", again])


def started(manifest: Entry) -> Iterator[str]:
    """Yields the commands that began the study and continued it."""
    for session in sessions(manifest):
        if session.get("command"):
            yield shlex.join(map(str, session["command"]))


def cautions(manifest: Entry) -> Iterator[str]:
    """Yields cautions for those who are about to call the commands."""
    if any(session.get("dirty") for session in sessions(manifest)):
        yield DIRTY
    if _imports(manifest, "run") or _of(manifest, "modules"):
        yield CODE


def needed(manifest: Entry) -> Rows:
    """Returns the files, folders and modules that the study read, and their content."""
    rows = []
    for kind in ("inputs", "modules"):
        for name, each in _of(manifest, kind).items():
            rows.append((name, f"SHA-256 {each['sha256']}"))
    return rows


def sessions(manifest: Entry) -> list[Entry]:
    """Returns the records of all sessions of the study: its start, continuations."""
    return [manifest, *manifest.get("continued", ())]


def _of(manifest: Entry, kind: str) -> Entry:
    found = manifest.get(kind)
    return found if isinstance(found, Mapping) else {}


def _imports(manifest: Entry, verb: str) -> list[str]:
    command = list(map(str, manifest.get("command") or ()))
    options = command[1 : command.index(verb)] if verb in command else []
    found: list[str] = []
    while options[:1] == [PLUGIN] and len(options) > 1:
        found, options = [*found, *options[:2]], options[2:]
    return found
