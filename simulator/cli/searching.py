"""A search as the terminal shows it: its progress, its table, what it has found."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config.text import shown
from . import console, printing
from .console import out

if TYPE_CHECKING:
    from ..scenario.scenario import Scenario


def search(
    config: "Scenario",
    folder: Path,
    jobs: int,
    checkpoint: float,
    forms: tuple[str, ...],
) -> None:
    """Starts or continues a search; shows its table and its best point."""
    from ...analysis import racing
    from ..config import plugins
    from ..studies import tuning

    remedy = f"; continue with {plugins.command('resume', folder)}"
    with console.interruptible(folder, remedy), console.progress(config.name) as hear:
        found = tuning.tune(
            config,
            folder=folder,
            judge=racing,
            jobs=jobs,
            progress=hear,
            checkpoint_s=checkpoint or None,
        )
    printing.close(found.study, forms)
    best = racing.best(found.study)
    out.say(_told(found, best, racing.in_words(found.study)))
    if borders := racing.borders(found.study, best.parameters):
        out.say(f"The best is at a border of the search: {borders}; search beyond it")


def _told(found: Any, best: Any, sought: str) -> str:
    """Returns the line with which a search ends."""
    values = ", ".join(f"{k}={shown(v)}" for k, v in best.parameters.items())
    low, high = best.value.low, best.value.high
    if best.diverged:
        sure = f"; {best.diverged} of its {best.fresh} new replicates missed"
    elif low == low:
        even = math.isclose(best.value.mean - low, high - best.value.mean, rel_tol=1e-6)
        what = "95 %" if even else "range"  # of what cannot be so low or high
        sure = f" ({what} from {low:.4g} to {high:.4g}, {best.fresh} new replicates)"
    else:
        sure = " (one new replicate: nothing can be said of chance)"
    saved = found.all_runs - found.runs or "none"
    return (
        f"Best of {found.tried}: {values}: {sought}: {best.value.mean:.4g}{sure}; "
        f"{found.runs} runs; early stopping saved {saved}"
    )
