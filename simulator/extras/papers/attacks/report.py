"""Attacks on the probed messages of a study, and tables and figures of images."""

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from .....analysis.figures import style
from .....analysis.figures.files import save_figure
from .....analysis.files import ROOM, written
from .....analysis.frames import Study, joined
from .....analysis.statistics import t_interval
from ....catalogue.algorithms.edge_cloud.part import NoisyEdgeCloud
from ....files.study import StudyError
from ....problem.data.images import image_shape
from ....scenario.scenario import Scenario
from . import linear, quality

if TYPE_CHECKING:
    from ....catalogue.models.cnn.network import CnnNetwork

Attack = Callable[[np.ndarray, np.ndarray | None], np.ndarray]
"""Gives an image, flat, from a flat message and the flat weights it was taken at."""

METRICS = ("psnr", "psnr_aligned", "ssim", "correlation")
PADDING = 2**31 - 1
"""Sample of a batch that is none."""
KEPT = ("run", "group", "replicate", "commit", "time", "client", "job")
"""Columns of probes that stay, as far as there are such."""
MAX_COLUMNS = 7
SHOWN = (1, 99)
"""Percentiles of a recovered image that are drawn black and white."""
NOTE = (
    "Left: the client's sample (the mean of a batch). Right: what its message gives, "
    "drawn from its 1st to its 99th percentile; r: absolute correlation of the two"
)


def linear_attack(num_outputs: int, l2: float = 0.0) -> Attack:
    """Returns the closed form for linear models, of weights `[C, F + 1]`.

    Args:
        num_outputs: `C`: 1 of logistic regression in two classes.
        l2: Coefficient of the regulariser in the message; needs the weights if > 0.
    """

    def attack(message: np.ndarray, state: np.ndarray | None) -> np.ndarray:
        gradient = np.asarray(message, np.float64).reshape(num_outputs, -1)
        if l2:
            weights = np.asarray(state, np.float64).reshape(num_outputs, -1)
            gradient = linear.without_regulariser(gradient, weights, l2)
        return linear.invert(gradient)

    return attack


def matching_attack(model: "CnnNetwork", *, use_first: bool, l2: float) -> Attack:
    """Returns gradient matching for the convolutional network; it needs the weights.

    Args are those of `matching.invert`.
    """
    from . import matching

    def attack(message: np.ndarray, state: np.ndarray | None) -> np.ndarray:
        assert state is not None  # `attack` refuses a study without
        return matching.invert(model, state, message, use_first=use_first, l2=l2)[0]

    return attack


def recover(
    probes: pd.DataFrame,
    samples: Float[np.ndarray, "N F"],
    attack: Attack,
    shape: tuple[int, ...],
    what: str = "message",
) -> pd.DataFrame:
    """Returns an attack's image for each probe, and its distance from the truth.

    Args:
        probes: Rows of the table `probes`, with the `group` of their run.
        samples: Training rows, that probes count; pixels in [0, 1], plane by plane.
        attack: Attack to carry out.
        shape: Height and width of an image, after the number of planes if several.
        what: Column of probes: `message`, or `gradient` for the result without noise.

    Returns:
        A row per probe: whose it is, `sample` (the batch's first) and `num_samples`,
        the measures of `quality.compare` (means over the batch; NaN where there is no
        image), and the images `true` (the batch's mean) and `found`.
    """
    kept = [column for column in KEPT if column in probes]
    rows = []
    for row in probes.to_dict("records"):
        batch = np.asarray(row["samples"], np.int64)
        batch = batch[batch != PADDING]
        state = row.get("state")
        found = attack(np.asarray(row[what]), None if state is None else _array(state))
        image, truths = found.reshape(shape), samples[batch].reshape(-1, *shape)
        each = [[*quality.compare(true, image).values()] for true in truths]
        rows.append(
            {column: row[column] for column in kept}
            | {"sample": int(batch[0]), "num_samples": len(batch)}
            | dict(zip(METRICS, np.mean(each, axis=0).tolist(), strict=True))
            | {"true": truths.mean(axis=0), "found": image}
        )
    columns = [*kept, "sample", "num_samples", *METRICS, "true", "found"]
    return pd.DataFrame(rows, columns=pd.Index(columns))


def summary(
    recovered: pd.DataFrame, by: Sequence[str] = ("group", "commit")
) -> pd.DataFrame:
    """Returns the mean and the 95 % t-interval of every measure over runs.

    Several probes of a run are averaged first, as they are not independent.

    Args:
        recovered: Table as `recover` returns it.
        by: Columns whose values make a row each: `("group",)` for all commits at once.

    Returns:
        Those columns, `metric`, `replicates` (runs with an image), `blank` (probes
        without one, which the means leave out), `mean`, `low` and `high`.
    """
    by = list(by)
    rows = []
    for values, part in recovered.groupby(by, sort=False):
        key = dict(zip(by, values, strict=True))
        imaged = part[[np.isfinite(found).all() for found in part["found"]]]
        for metric in METRICS:
            each = imaged.groupby("run")[metric].mean().to_numpy(np.float64)
            mean, low, high = t_interval(each)
            rows.append(
                key
                | {"metric": metric, "replicates": len(each)}
                | {"blank": len(part) - len(imaged)}
                | {"mean": mean, "low": low, "high": high}
            )
    columns = [*by, "metric", "replicates", "blank", "mean", "low", "high"]
    return pd.DataFrame(rows, columns=pd.Index(columns))


def grid(recovered: pd.DataFrame, title: str) -> Figure:
    """Draws true and recovered images: a row per group, a column per commit.

    Each group shows its first run. Of more than 7 commits, 7 are shown, evenly spread
    from the first to the last.
    """
    known = list(dict.fromkeys(recovered["group"]))
    commits = np.unique(recovered["commit"].to_numpy(np.int64))
    spread = np.linspace(0, commits.size - 1, min(commits.size, MAX_COLUMNS))
    commits = commits[np.rint(spread).astype(int)]
    with style.context():
        size = (max(5.2, 0.6 + 1.5 * commits.size), 0.9 + 1.05 * len(known))
        figure = Figure(figsize=size)
        figure.suptitle(style.text(title, int(12 * size[0])), x=0.01, ha="left")
        axes = figure.subplots(len(known), commits.size, squeeze=False)
        for group, line in zip(known, axes, strict=True):
            rows = recovered[recovered["group"] == group]
            rows = rows[rows["run"] == rows["run"].iloc[0]]
            for commit, cell in zip(commits, line, strict=True):
                _draw(cell, rows[rows["commit"] == commit])
            line[0].set_ylabel(style.text(group, 12), fontsize=8)
        for commit, cell in zip(commits, axes[0], strict=True):
            cell.set_title(f"commit {commit}", fontsize=8)
        note = textwrap.fill(NOTE, int(17 * size[0]))
        figure.supxlabel(note, fontsize=7.5, x=0.01, ha="left", color="#505050")
    return figure


def _draw(axes: Axes, rows: pd.DataFrame) -> None:
    axes.set(xticks=[], yticks=[])
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    if rows.empty:
        return
    row = rows.iloc[0]
    blank = not np.isfinite(row["found"]).all()
    true, found = np.clip(row["true"], 0, 1), row["found"]
    found = np.ones_like(true) if blank else _stretched(found)
    gap = np.ones((*true.shape[:-1], max(1, true.shape[-1] // 14)))
    both = np.concatenate([true, gap, found], axis=-1)
    if both.ndim == 3:
        both = np.moveaxis(both, 0, -1)
        both = both if both.shape[-1] == 3 else both.mean(axis=-1)
    axes.imshow(both, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    said = "no image" if blank else f"r = {row['correlation']:.2f}"
    axes.set_xlabel(said, fontsize=7.5, labelpad=1.5)


def _stretched(image: np.ndarray) -> np.ndarray:
    low, high = np.percentile(image, SHOWN)
    if high <= low:
        low, high = image.min(), image.max()
    return np.clip((image - low) / (high - low if high > low else 1), 0, 1)


def _array(values: ArrayLike) -> np.ndarray | None:
    array = np.asarray(values, np.float64)
    return array if array.ndim else None


def attack(study: Study, what: str = "message", most: int = 20) -> pd.DataFrame:
    """Recovers images from the messages that a study's server received.

    Linear models by their closed form, the convolutional network by gradient matching,
    for which the weights must have been probed as well.

    Args:
        study: Study whose scenario has a `probe`.
        what: `message`, or `gradient` for the result without noise.
        most: Probes of a group and commit that are looked at, >= 1.

    Returns:
        As `recover` returns it, all groups one after the other.

    Raises:
        StudyError: There are no probes, or the attack needs others.
    """
    probes = joined(study, "probes")
    if probes.empty or what not in probes:
        raise StudyError(
            f"study {study.manifest['name']!r} must have probed {what}; add probe: "
            f"{{every: 1000, what: [{what}, state]}} to its scenario and run it again"
        )
    probes = probes.groupby(["group", "commit"], sort=False).head(most)
    scenarios = {run["run"]: run["scenario"] for run in study.manifest["runs"]}
    parts = []
    for group, mine in probes.groupby("group", sort=False):
        scenario = Scenario.model_validate(scenarios[mine["run"].iloc[0]])
        images, shape, method = _victim(scenario)
        is_linear = scenario.problem.model.is_linear
        if "state" not in mine and (not is_linear or scenario.problem.l2 > 0):
            raise StudyError(
                f"study {study.manifest['name']!r} must have probed the state of "
                f"{group}; add it to probe.what and run it again"
            )
        parts.append(recover(mine, images, method, shape, what))
    return pd.concat(parts, ignore_index=True)


def save(study: Study, recovered: pd.DataFrame, folder: str | Path) -> list[Path]:
    """Writes the measures as CSV and the images as a figure.

    Raises:
        StudyError: Something cannot be written.
    """
    where = Path(folder) / "attack"
    table = where / "recovered.csv"
    with written(table, "the table", ROOM):
        where.mkdir(parents=True, exist_ok=True)
        summary(recovered).to_csv(table, index=False)
    figure = grid(recovered, study.manifest["name"])
    return [table, *save_figure(figure, where / "recovered")]


def _victim(scenario: Scenario) -> tuple[np.ndarray, tuple[int, ...], Attack]:
    from ....problem.data.outputs import form
    from ....problem.learning import dataset

    problem = scenario.problem
    data = dataset(problem.data, scenario.engine.precision)
    outputs = form(problem, data).num_outputs
    given = getattr(problem.model, "image", None)
    height, width, depth = image_shape(data.x_train.shape[1], given)
    shape = (height, width) if depth == 1 else (depth, height, width)
    if problem.model.is_linear:
        return data.x_train, shape, linear_attack(outputs, problem.l2)
    model = problem.model.make(outputs, data.x_train.shape[1], "horizontal")
    algorithm = scenario.algorithm
    noisy = isinstance(algorithm, NoisyEdgeCloud)
    first = not noisy or algorithm.noised == "all"
    method = matching_attack(model, use_first=first, l2=problem.l2)
    return data.x_train, shape, method
