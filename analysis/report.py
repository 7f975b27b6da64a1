"""The standard figures of a study as files, and small tables as text."""

import math
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from analysis import figures, staleness, swept
from analysis.frames import Study, groups, joined, runs
from analysis.saving import save_figure
from analysis.targets import default_target


def save(study: Study, folder: str | Path) -> list[Path]:
    """Draws the standard figures of a study into `folder/figures`.

    Convergence of the first metric that was evaluated against time and commits, and of
    the others against commits; the first one's final values over a swept number; how
    stale each variant was at the first point of a sweep, unless it never was, with its
    law where one is known; time to the study's target where there are groups to
    compare. Each as PNG (200 dots per inch) and as PDF; the same study gives the same
    bytes.

    Args:
        study: with at least one run that has ended.
        folder: in which the folder of figures is made if needed.

    Returns:
        Paths of the PNGs, in that order.

    Raises:
        StudyError: a figure cannot be written.
    """
    where = Path(folder) / "figures"
    return [
        save_figure(figure, where / f"{name}.png") for name, figure in _standard(study)
    ]


def markdown(frame: pd.DataFrame) -> str:
    """Returns a frame, without its index, as a table in Markdown.

    Numbers stand to the right, with four digits; what is missing is left empty.

    Args:
        frame: whose cells are words or numbers.
    """
    names = [_cell(name) for name in frame.columns]
    rules = [
        "---:" if pd.api.types.is_numeric_dtype(frame.iloc[:, number]) else "---"
        for number in range(len(names))
    ]
    cells = [[_cell(value) for value in row] for row in frame.itertuples(index=False)]
    return "".join(f"| {' | '.join(row)} |\n" for row in [names, rules, *cells])


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.4g}"
    text = "" if value is None or value is pd.NA else str(value)
    return text.replace("|", r"\|").replace("\n", " ")


def _standard(study: Study) -> Iterator[tuple[str, Figure]]:
    """Yields file names and figures, one at a time."""
    metric = study.manifest["scenario"]["evaluate"]["metrics"][0]
    known = groups(study)
    # A sequential round has several commits, a parallel one has one.
    in_rounds = set(runs(study)["protocol"]) == {"rounds"}
    counted = "rounds" if in_rounds else "commits"
    for against in ("time", counted):
        yield f"convergence-{against}", figures.convergence(study, metric, against)
    for other in study.manifest["scenario"]["evaluate"]["metrics"][1:]:
        figure = figures.convergence(study, other, counted)
        yield f"convergence-{counted}-{other}", figure
    key = swept.swept_key(study)
    if key is not None:
        yield f"{metric}-over-{key}", swept.final_over(study, key, metric)
    if key is not None and study.manifest["scenario"]["stop"].get("windowed"):
        yield f"commits-over-{key}", swept.commits_over(study, key)
    measured = set(joined(study, "staleness")["group"])
    names = _file_names(known)
    for group in _first_groups(study):
        if group in measured and not staleness.is_always_zero(study, group):
            law = staleness.staleness_law(study, group)
            yield (
                f"staleness-{names[group]}",
                figures.staleness_histogram(study, group, law),
            )
    if len(known) > 1:
        target = default_target(study)
        yield (
            "time-to-target",
            figures.speed_up_bars(study, target.metric, target.value),
        )


def _first_groups(study: Study) -> list[str]:
    """Returns the first group of each variant."""
    return list(runs(study).drop_duplicates("variant")["group"])


def _file_names(known: list[str]) -> dict[str, str]:
    """Returns a different name for each group that any file system takes."""
    found: dict[str, str] = {}
    for group in known:
        plain = re.sub(r"[^\w.]+", "-", group, flags=re.ASCII).strip("-.").lower()[:80]
        name, number = plain or "group", 1
        while name in found.values():
            number += 1
            name = f"{plain or 'group'}-{number}"
        found[group] = name
    return found
