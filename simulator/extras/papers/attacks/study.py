"""Attacks on the probed messages of a finished study."""

from pathlib import Path

import numpy as np
import pandas as pd

from .....analysis.figures.files import save_figure
from .....analysis.files import ROOM, written
from .....analysis.frames import Study, joined
from ....catalogue.algorithms.edge_cloud.part import NoisyEdgeCloud
from ....files.study import StudyError
from ....problem.data.images import image_shape
from ....scenario.scenario import Scenario
from . import report


def attack(study: Study, what: str = "message", most: int = 20) -> pd.DataFrame:
    """Recovers images from what the server of a study received.

    Linear models by their closed form, the convolutional network by gradient matching,
    for which the weights must have been probed as well.

    Args:
        study: Study whose scenario has a `probe`.
        what: `message`, or `gradient` for what no noise would give.
        most: Probes of a group and commit that are looked at, >= 1.

    Returns:
        As `report.recover` returns it, all groups one after the other.

    Raises:
        StudyError: Nothing was probed, or not what the attack needs.
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
        if "state" not in mine and _needs_state(scenario):
            raise StudyError(
                f"study {study.manifest['name']!r} must have probed the state of "
                f"{group}; add it to probe.what and run it again"
            )
        parts.append(report.recover(mine, images, method, shape, what))
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
        report.summary(recovered).to_csv(table, index=False)
    figure = report.grid(recovered, study.manifest["name"])
    return [table, *save_figure(figure, where / "recovered")]


def _needs_state(scenario: Scenario) -> bool:
    return not scenario.problem.model.is_linear or scenario.problem.l2 > 0


def _victim(scenario: Scenario) -> tuple[np.ndarray, tuple[int, ...], report.Attack]:
    from ....problem.data.outputs import form
    from ....problem.learning import dataset

    problem = scenario.problem
    data = dataset(problem.data, scenario.engine.precision)
    outputs = form(problem, data).num_outputs
    given = getattr(problem.model, "image", None)
    height, width, depth = image_shape(data.x_train.shape[1], given)
    shape = (height, width) if depth == 1 else (depth, height, width)
    if problem.model.is_linear:
        return data.x_train, shape, report.linear_attack(outputs, problem.l2)
    model = problem.model.make(outputs, data.x_train.shape[1], "horizontal")
    algorithm = scenario.algorithm
    noisy = isinstance(algorithm, NoisyEdgeCloud)
    first = not noisy or algorithm.noised == "all"
    method = report.matching_attack(model, use_first=first, l2=problem.l2)
    return data.x_train, shape, method
