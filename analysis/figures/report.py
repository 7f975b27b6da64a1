"""The standard figures of a study, and their files."""

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from analysis import staleness
from analysis.figures import heat_maps, lines, privacy, style, sweeps
from analysis.figures.files import check_format, save_figure
from analysis.figures.learning_curves import convergence
from analysis.figures.speed_ups import speed_up_bars
from analysis.figures.staleness import staleness_histogram
from analysis.frames import Study, groups, joined, runs, swept_columns
from analysis.targets import default_target


def save(
    study: Study,
    folder: str | Path,
    form: str = "png",
    styles: Sequence[str | Path] = (),
) -> list[Path]:
    """Draws the standard figures of a study into `folder/figures`.

    Convergence of the first metric that was evaluated against time and commits, and of
    the others against commits; the first one's final values over a swept number, or as
    a heat map over two swept keys; against the privacy spent, where that differs
    between groups; how stale each variant was at the first point of a sweep, unless it
    never was, with its law where one is known; time to the study's target where there
    are groups to compare. The same study gives the same bytes.

    Args:
        study: with at least one run that has ended.
        folder: parent of the folder `figures`, which is created if missing.
        form: `pdf`, `svg`, or `png` for PNGs (200 dots per inch) and PDFs.
        styles: Matplotlib styles, names or files, over this package's own.

    Returns:
        Paths of the files, in that order, without the PDFs of PNGs.

    Raises:
        StudyError: a figure cannot be written.
        UserError: there is no such format or style.
    """
    check_format(form)
    where = Path(folder) / "figures"
    with style.using(*styles):
        return [
            save_figure(figure, where / f"{name}.{form}")
            for name, figure in standard(study)
        ]


def standard(study: Study) -> Iterator[tuple[str, Figure]]:
    """Yields the standard figures with their file names, one at a time, as `save`."""
    metric = study.manifest["scenario"]["evaluate"]["metrics"][0]
    known = groups(study)
    # A sequential round has several commits, a parallel one has one.
    in_rounds = set(runs(study)["protocol"]) == {"rounds"}
    counted = "rounds" if in_rounds else "commits"
    for against in ("time", counted):
        yield f"convergence-{against}", convergence(study, metric, against)
    for other in study.manifest["scenario"]["evaluate"]["metrics"][1:]:
        figure = convergence(study, other, counted)
        yield f"convergence-{counted}-{other}", figure
    key = lines.swept_key(study)
    if key is not None:
        yield f"{metric}-over-{_plain(key)}", sweeps.final_over(study, key, metric)
    two = lines.swept_keys(study)
    if len(two) == 2 and _is_a_grid(study, two):
        name = f"{metric}-over-{_plain(two[0])}-and-{_plain(two[1])}"
        yield name, heat_maps.heat_map(study, metric, (two[0], two[1]))
    if _privacy_differs(study, metric):
        yield f"{metric}-against-privacy", privacy.privacy_utility(study, metric)
    if key is not None and study.manifest["scenario"]["stop"].get("windowed"):
        yield f"commits-over-{_plain(key)}", sweeps.commits_over(study, key)
    measured = set(joined(study, "staleness")["group"])
    names = _file_names(known)
    for group in _first_groups(study):
        if group in measured and not staleness.is_always_zero(study, group):
            law = staleness.staleness_law(study, group)
            yield (
                f"staleness-{names[group]}",
                staleness_histogram(study, group, law),
            )
    if len(known) > 1:
        target = default_target(study)
        yield (
            "time-to-target",
            speed_up_bars(study, target.metric, target.value),
        )


def _is_a_grid(study: Study, keys: list[str]) -> bool:
    """Says whether two keys were swept across each other, and not drawn or zipped."""
    x, y = (swept_columns(study)[key] for key in keys)
    points = runs(study)[[x, y]].dropna().drop_duplicates()
    sides = points[x].nunique(), points[y].nunique()
    return min(sides) > 1 and 2 * len(points) > math.prod(sides)


def _privacy_differs(study: Study, metric: str) -> bool:
    """Says whether groups have spent different finite epsilons."""
    told = [run.get("privacy") or {} for run in study.manifest["runs"]]
    if all(entry.get("delta") is None for entry in told):
        return False
    spent = privacy.utility(study, metric)["epsilon"].to_numpy(np.float64)
    spent = spent[np.isfinite(spent)]
    return spent.size > 1 and float(spent.max()) > float(spent.min())


def _first_groups(study: Study) -> list[str]:
    """Returns the first group of each variant."""
    return list(runs(study).drop_duplicates("variant")["group"])


def _file_names(known: list[str]) -> dict[str, str]:
    """Returns a different name for each group that any file system takes."""
    found: dict[str, str] = {}
    for group in known:
        plain = _plain(group).lower() or "group"
        name, number = plain, 1
        while name in found.values():
            number += 1
            name = f"{plain}-{number}"
        found[group] = name
    return found


def _plain(name: str) -> str:
    """Returns a user's name as any file system takes it; empty if nothing is left."""
    return re.sub(r"[^\w.]+", "-", name, flags=re.ASCII).strip("-.")[:80]
