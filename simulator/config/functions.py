"""Functions and objects of a user's own that a scenario names.

`"module:name"` is what a module has under a name; the module lies in the working
folder, is installed, or was named by `--import`. `"memory:NAME"` is an object that a
Python program has handed over. Both are identified by their content.
"""

import hashlib
import inspect
import pickle
import re
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from simulator.config import plugins
from simulator.config.base import Reads, Rule
from simulator.config.errors import ScenarioError, UserError
from simulator.config.text import one_line, suggestion

MEMORY = "memory"
"""Stands for a module in the names of objects that were handed over."""
DRAWN = re.compile(rb"[0-9a-f]{32}")
"""Number of a packed class of a notebook, drawn in each process."""
MARKED = r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.@-]*$"
FunctionName = Annotated[
    str,
    Field(pattern=MARKED),
    Reads.FUNCTION,
    Rule('"module:function"', '"mine:build"'),
]
"""A function, or an object, of a module of the user's own."""


class UserFunction(NamedTuple):
    """A function or object of the user's, as messages name it.

    Attributes:
        text: `"module:name"`, or the name of an object that was handed over.
        entry: Entry that holds it.
    """

    text: str
    entry: str

    def __str__(self) -> str:
        """Returns the name in quotes, for messages."""
        return repr(self.text)

    def refused(self, rule: str) -> ScenarioError:
        """Returns the error that an entry breaks a rule: "must ..., got ..."."""
        return ScenarioError(f"{self.entry} {rule}")


class HandedOver(NamedTuple):
    """An object of a Python program.

    Attributes:
        content: The object itself.
        packed: Its bytes, from which other processes make it again.
        sha256: Digest of its content, and of the code that it is made by.
        called: Description of it, such as its class.
    """

    content: Any
    packed: bytes
    sha256: str
    called: str


_handed_over: dict[str, HandedOver] = {}
"""Objects by their names, `memory:...`."""


def resolve(text: str, where: str) -> Any:
    """Returns what a scenario names.

    Args:
        text: `"module:name"` or `"memory:NAME"`.
        where: Entry that holds the text, for messages.

    Raises:
        ScenarioError: There is no such module or name, or it was not handed over here.
    """
    module, _, name = text.partition(":")
    if module == MEMORY:
        return _known(text, where).content
    try:
        found = plugins.imported(module)
    except UserError as error:
        raise ScenarioError(
            f'{where} must be "module:name", got {text!r}: {error}'
        ) from (error)
    plugins.note(module, module)
    known = [each for each in vars(found) if not each.startswith("_")]
    if name not in vars(found):
        raise ScenarioError(
            f"{where} must name something of the module {module!r}, got {name!r}; "
            f"{suggestion(name, known)}"
        )
    return vars(found)[name]


def content(text: str, where: str) -> tuple[str, str, int]:
    """Returns place, digest and size of what a scenario names.

    Of a module that is its file, or of a package all of them, as it was imported.

    Raises:
        ScenarioError: As `resolve`.
    """
    module, _, name = text.partition(":")
    if module == MEMORY:
        known = _known(text, where)
        return known.called, known.sha256, len(known.packed)
    resolve(text, where)
    source = plugins.source(module)
    size = Path(source.file).stat().st_size if Path(source.file).is_file() else 0
    return source.file, _sha256(f"{source.sha256}:{name}".encode()), size


def hand_over(name: str, given: Any) -> str:
    """Keeps an object of this program; returns how a scenario names it.

    Args:
        name: Word for it, such as `model`.
        given: The object.

    Raises:
        UserError: It cannot be packed for other processes, and so not be identified.
    """
    import cloudpickle

    try:
        packed = cloudpickle.dumps(given)
    except Exception as error:  # an object says by itself how it is pickled
        raise UserError(
            f"{name} must be something that can be pickled, so that it is known when "
            f"it changes, got {said(error)}; write it into a module, and name that by "
            f'"module:name"'
        ) from error
    same = DRAWN.sub(b"", packed)
    digest = _sha256(same, *map(_code, _made_by(given)))
    text = f"{MEMORY}:{name}@{digest[:12]}"
    keep({text: (packed, digest, _called(given))}, {text: given})
    return text


def keep(
    packed: dict[str, tuple[bytes, str, str]], given: dict[str, Any] | None = None
) -> None:
    """Keeps packed objects in this process, unless they are here.

    Args:
        packed: Bytes, digest and description of each, by its name.
        given: The objects themselves, where they are at hand.
    """
    for name, (content, digest, called) in packed.items():
        if name not in _handed_over:
            here = pickle.loads(content) if given is None else given[name]
            _handed_over[name] = HandedOver(here, content, digest, called)


def packed(names: Iterable[str]) -> dict[str, tuple[bytes, str, str]]:
    """Returns what other processes need of the objects among some names."""
    return {name: _handed_over[name][1:] for name in names if name in _handed_over}


def calling(text: str, where: str, call: Callable[[], Any]) -> Any:
    """Calls a function of the user's; what it raises becomes one line.

    Args:
        text: Name of the function.
        where: Entry that holds it.
        call: Calls it.

    Raises:
        ScenarioError: With the first line of the error, and where it came up.
    """
    try:
        return call()
    except UserError:
        raise
    except Exception as error:  # the user's code may raise anything
        raise ScenarioError(
            f"{where} must be a function that can be called here, got {said(error)} "
            f"from {text!r}; mend it"
        ) from error


def said(error: BaseException) -> str:
    """Returns an error in one line, with the last line of a user's file that it saw."""
    first = next((line for line in str(error).splitlines() if line.strip()), "")
    text = one_line(f"{type(error).__name__}: {first.strip()}"[:300])
    frames = traceback.extract_tb(error.__traceback__)
    own = str(Path(__file__).parents[1])
    users = [
        frame
        for frame in frames
        if "site-packages" not in frame.filename
        and not frame.filename.startswith(own)
        and not frame.filename.startswith("<frozen")
    ]
    if not users:
        return text
    return f"{text} ({Path(users[-1].filename).name}:{users[-1].lineno})"


def _known(text: str, where: str) -> HandedOver:
    if text not in _handed_over:
        raise ScenarioError(
            f"{where} must be an object of this program, got {text!r}, which was not "
            f"handed over to it; pass it to simulate(...) again"
        )
    return _handed_over[text]


def _made_by(given: Any) -> list[Any]:
    """Returns an object's parts whose code decides on what it does."""
    parts = given if isinstance(given, tuple | list) else (given,)
    functions = [each for each in parts if inspect.isroutine(each)]
    return [*functions, *(type(each) for each in parts if not inspect.isroutine(each))]


def _code(made_by: Any) -> bytes:
    """Returns the source of the module of a class or function; nothing without any."""
    module = inspect.getmodule(made_by)
    file = getattr(module, "__file__", None)
    if file is None or not Path(file).is_file() or module is None:
        return b""
    # A library is known by its version, which the manifest has; a notebook's or a
    # script's objects are packed with their code.
    if "site-packages" in file or module.__name__ == "__main__":
        return b""
    return Path(file).read_bytes()


def _called(given: Any) -> str:
    one = given if inspect.isroutine(given) or inspect.isclass(given) else type(given)
    return f"{one.__module__}.{one.__qualname__}"


def _sha256(*contents: bytes) -> str:
    digest = hashlib.sha256()
    for each in contents:
        digest.update(hashlib.sha256(each).digest())
    return digest.hexdigest()
