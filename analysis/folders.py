"""Functions of a study that take the path of its folder as well."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ..simulator.parts.errors import StudyError

Found = TypeVar("Found")


def takes_folder(found: Found) -> Found:
    """Lets a function of a study take its folder as well; all else stays as it is.

    Whatever is neither raises StudyError.
    """
    if not inspect.isfunction(found) or hasattr(found, "__wrapped__"):
        return found
    return _loading(found) if "study" in found.__code__.co_varnames[:1] else found


@functools.cache
def _loading(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def of_either(study: Any, *args: Any, **options: Any) -> Any:
        if isinstance(study, str | Path):
            from ..simulator.files.study import load

            study = load(study)
        if not hasattr(study, "manifest"):
            raise StudyError(f"study must be a study or its folder, got {study!r}")
        return function(study, *args, **options)

    return of_either
