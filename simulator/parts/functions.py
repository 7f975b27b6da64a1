"""Functions and objects of a user's own that a scenario names.

`"module:name"` is what a module has under a name; the module lies in the working
folder, is installed, or was named by `--plugin`. `"memory:NAME"` is an object that a
Python program has handed over. Both are identified by their content.
"""

import hashlib
import inspect
import pickle
import pickletools
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import Field

from . import own_code, plugins
from .base import Reads, Rule
from .errors import ScenarioError, UserError, said, suggestion
from .own_code import Content

T = TypeVar("T")

MEMORY = "memory"
"""Replaces a module in the names of objects from a Python program."""
DRAWN = re.compile(rb"[0-9a-f]{32}")
"""Number of a packed class of a notebook, drawn in each process."""
PACKING = ("__main__", "cloudpickle")
"""Modules that a pickle names, and takes nothing from that it does not hold."""
MARKED = r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.@-]*$"
FunctionName = Annotated[
    str,
    Field(pattern=MARKED),
    Reads.FUNCTION,
    Rule('"module:function"', '"mine:build"'),
]
"""A function, or an object, of a user's module."""


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


Packed = tuple[bytes, Content]
"""Bytes from which other processes restore an object, and its kind."""
_handed_over: dict[str, tuple[object, Packed]] = {}
"""Objects by their names, `memory:...`, and the same for other processes."""


def resolve(text: str, where: str) -> Any:
    """Returns the object that a scenario names.

    Args:
        text: `"module:name"` or `"memory:NAME"`.
        where: Entry that holds the text, for messages.

    Raises:
        ScenarioError: There is no such module or name, or it was not handed over here.
    """
    module, _, name = text.partition(":")
    if module == MEMORY:
        return _known(text, where)[0]
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
            f"{where} must name an object of the module {module!r}, got {name!r}; "
            f"{suggestion(name, known)}"
        )
    return vars(found)[name]


def content(text: str, where: str) -> Content:
    """Returns the object that a scenario names, by its content.

    Of a module that is its file, or of a package all of them, as it was imported, and
    other modules of the user's own that it imports.

    Raises:
        ScenarioError: As `resolve`.
    """
    module, _, name = text.partition(":")
    if module == MEMORY:
        return _known(text, where)[1][1]
    resolve(text, where)
    source = plugins.source(module)
    file = Path(source.at)
    size = file.stat().st_size if file.is_file() else 0
    digest = digest_of(source.sha256, name, source.imports)
    return source._replace(sha256=digest, bytes=size)


def digest_of(sha256: str, name: str, imports: Mapping[str, tuple[str, str]]) -> str:
    """Returns the digest of a module's object, as in `Content`."""
    return _sha256(f"{sha256}:{name}".encode(), *_digests(imports))


def hand_over(name: str, given: object) -> str:
    """Keeps an object of this program; returns how a scenario names it.

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
    # What a pickle takes from modules it names by them; the rest it holds.
    words = {arg for _, arg, _ in pickletools.genops(packed) if isinstance(arg, str)}
    taken = {w for w in words & {*sys.modules} if not w.startswith(PACKING)}
    modules, libraries = own_code.of(*taken)
    digest = _sha256(DRAWN.sub(b"", packed), *_digests(modules))
    told = Content(_called(given), digest, len(packed), modules, libraries)
    text = f"{MEMORY}:{name}@{digest[:12]}"
    _handed_over.setdefault(text, (given, (packed, told)))
    return text


def keep(packed: dict[str, Packed]) -> None:
    """Makes packed objects again in this process, unless they are here."""
    for name in packed.keys() - _handed_over.keys():
        _handed_over[name] = pickle.loads(packed[name][0]), packed[name]


def packed(names: Iterable[str]) -> dict[str, Packed]:
    """Returns the packed objects among some names, for other processes."""
    return {name: _handed_over[name][1] for name in names if name in _handed_over}


def calling(text: str, where: str, call: Callable[[], T]) -> T:
    """Calls a user's function; an error in it becomes one line.

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


def _known(text: str, where: str) -> tuple[object, Packed]:
    if text not in _handed_over:
        raise ScenarioError(
            f"{where} must be an object of this program, got {text!r}, which it does "
            "not have; pass it to simulate(...) again"
        )
    return _handed_over[text]


def _called(given: object) -> str:
    one = given if inspect.isroutine(given) or inspect.isclass(given) else type(given)
    return f"{one.__module__}.{one.__qualname__}"


def _sha256(*contents: bytes) -> str:
    digest = hashlib.sha256()
    for each in contents:
        digest.update(hashlib.sha256(each).digest())
    return digest.hexdigest()


def _digests(modules: Mapping[str, tuple[str, str]]) -> list[bytes]:
    return [f"{name} {digest}".encode() for name, (_, digest) in modules.items()]
