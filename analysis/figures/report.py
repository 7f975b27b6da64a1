"""The standard figures of a study, and their files."""

import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import ModuleType

from matplotlib.figure import Figure

from ...simulator.parts.catalogue import records
from ...simulator.parts.errors import UserError
from ...simulator.parts.lazy import listed
from ..frames import Study
from . import instants
from .files import save_all
from .plugin import StudyFigure

FIRST = ("learning_curves", "tails", "speed_ups", "sweeps", "heat_maps", "medians")
"""Modules whose first figure `stalesim run` draws; `stalesim plot` draws all."""
OnDrawn = Callable[[int, int], None]
"""Called with how many kinds of figures are drawn, and how many there are."""


def save(
    study: Study,
    folder: str | Path,
    forms: str | Sequence[str] = "png",
    styles: Sequence[str | Path] = (),
    at: Sequence[float] = (),
) -> list[Path]:
    """Draws the standard figures of a study into `folder/figures`, with captions.

    The same study gives the same bytes.

    Args:
        study: Study with at least one run that has ended.
        folder: Parent of the folder `figures`, which is created if missing.
        forms: `png` (200 dots per inch), `pdf` or `svg`, or several of them.
        styles: Venues, or Matplotlib styles, names or files, over this package's own.
        at: Virtual seconds at which the first metric is drawn as well.

    Returns:
        Paths of the files, in the order of `standard`.

    Raises:
        StudyError: A figure cannot be written.
        UserError: There is no such format or style, or a plug-in's figure is none.
    """
    return list(saved(study, folder, forms, styles, at))


def saved(
    study: Study,
    folder: str | Path,
    forms: str | Sequence[str] = "png",
    styles: Sequence[str | Path] = (),
    at: Sequence[float] = (),
    report: OnDrawn | None = None,
    *,
    few: bool = False,
) -> Iterator[Path]:
    """Yields the paths of the standard figures as they are drawn, as `standard`."""
    figures = standard(study, at, report, few=few)
    yield from save_all(study, figures, caption, folder, forms, styles)


def standard(
    study: Study,
    at: Sequence[float] = (),
    report: OnDrawn | None = None,
    *,
    few: bool = False,
) -> Iterator[tuple[str, Figure]]:
    """Yields the standard figures with their file names, one at a time, as `save`.

    Args:
        study: Study with at least one run that has ended.
        at: Virtual seconds at which the first metric is drawn as well.
        report: Called with the number of kinds that are drawn, and of all.
        few: Whether the first of each module in `FIRST` are enough.

    Raises:
        UserError: The figure of a plug-in is none, or has the name of another one.
    """
    names: set[str] = set()
    kinds = [module for module in _modules() if hasattr(module, "standard")]
    if few:
        kinds = [each for each in kinds if each.__name__.rpartition(".")[2] in FIRST]
    for done, module in enumerate(kinds):
        if report is not None:
            report(done, len(kinds))
        for name, figure in islice(module.standard(study), 1 if few else None):
            names.add(name)
            yield name, figure
    for name, figure in instants.at_times(study, at):
        if name not in names:
            names.add(name)
            yield name, figure
    for drawing in records("figures", StudyFigure):
        figure = drawing.function()(study)
        if figure is None:
            continue
        if not isinstance(figure, Figure):
            raise UserError(
                f"the figure {drawing.name!r} must be drawn as a Matplotlib Figure, or "
                f"be None, got {type(figure).__name__}; return the figure"
            )
        if drawing.name in names:
            raise UserError(
                f"the figure {drawing.name!r} must have a unique name in this study, "
                "got another figure's; rename it"
            )
        yield drawing.name, figure


def caption(name: str) -> str:
    """Returns the caption of a standard figure; its name if that is unknown."""
    known = {
        pattern: words
        for module in _modules()
        for pattern, words in getattr(module, "CAPTIONS", {}).items()
    }
    known |= {
        f"^{re.escape(d.name)}$": d.meaning for d in records("figures", StudyFigure)
    }
    found = (words for pattern, words in known.items() if re.search(pattern, name))
    return next(found, "") or name


def _modules() -> list[ModuleType]:
    text = Path(__file__).with_name("__init__.py").read_text(encoding="utf-8")
    modules = dict.fromkeys(listed(text, str(__package__)).values())
    others = [name for name in modules if name not in (__name__, __package__)]
    return [import_module(name) for name in others]
