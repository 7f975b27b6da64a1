"""Staleness in Python: of studies and recorded timelines; unknown names are refused."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import stalesim
from stalesim import analysis
from stalesim.analysis import (
    choices,
    claims,
    fairness,
    figures,
    frames,
    paired,
    racing,
    staleness,
    timelines,
)
from stalesim.simulator.cli import app
from stalesim.simulator.parts.errors import StudyError

TREE = """\
name: stale
problem: {data: {kind: digits, limit: 100}, partition: {kind: iid, clients: 4}}
clients:
  groups:
    slow: {number: 1, compute: {law: expon}}
    fast: {number: 3, compute: {law: expon, scale: "1/(m+1)"}}
protocol: {kind: asynchronous}
algorithm: {kind: sgd, step_size: 0.1, batch: 4}
stop: {commits: 120}
evaluate: {every: {commits: 60}}
replicates: 2
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stale")
    (folder / "stale.yaml").write_text(TREE, encoding="utf-8")
    for command, name in (("run", "run"), ("timeline", "timeline")):
        given = [
            command,
            str(folder / "stale.yaml"),
            "--no-plots",
            "-o",
            str(folder / name),
        ]
        assert CliRunner().invoke(app, given).exit_code == 0
    summary = [*given[:3], "--summary", "-o", str(folder / "summary")]
    assert CliRunner().invoke(app, summary).exit_code == 0
    return folder


LOOKS: list[Callable[[Any], pd.DataFrame]] = [
    lambda study: staleness.by_client(study, "base"),
    lambda study: staleness.by_client_group(study),
    lambda study: staleness.histogram(study, "base", 2)[["low", "high", "count"]],
    lambda study: staleness.histogram(study, "base", steady=True)[["low", "count"]],
]


@pytest.mark.parametrize("look", LOOKS)
def test_a_folder_is_as_stale_as_its_study(folder: Path, look: Any) -> None:
    of_study = look(stalesim.load(folder / "run"))
    pd.testing.assert_frame_equal(look(str(folder / "run")), of_study)


MODULES = (analysis, choices, claims, fairness, figures, paired, racing, staleness)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_what_is_no_study_is_refused_in_a_line(module: Any) -> None:
    """A function that takes a study also takes its folder: none is forgotten."""
    names = getattr(module, "__all__", None) or vars(module)
    asked = [getattr(module, name) for name in names if not name.startswith("_")]
    asked = [
        each
        for each in asked
        if inspect.isfunction(each)
        and each.__module__.startswith(module.__name__)
        and [*inspect.signature(each).parameters][:1] == ["study"]
    ]
    assert asked
    for function in asked:
        missing = [
            name
            for name, given in inspect.signature(function).parameters.items()
            if given.default is inspect.Parameter.empty
        ]
        with pytest.raises(StudyError, match="must be a study or its folder, got 5"):
            function(5, **dict.fromkeys(missing[1:]))


@pytest.mark.parametrize("look", LOOKS)
def test_a_timeline_is_as_stale_as_its_study(folder: Path, look: Any) -> None:
    study, timeline = (stalesim.load(folder / name) for name in ("run", "timeline"))
    found = look(timeline)
    assert len(found)
    pd.testing.assert_frame_equal(found, look(study), check_dtype=False)
    with pytest.raises(StudyError, match="record: summary"):
        look(stalesim.load(folder / "summary"))


@pytest.mark.parametrize("name", ["run", "timeline"])
def test_the_steady_mean_is_of_the_jobs_after_the_start(
    folder: Path, name: str
) -> None:
    jobs = frames.jobs(stalesim.load(folder / "timeline"))
    jobs = jobs.loc[jobs["outcome"] == "APPLIED"]
    first = jobs.groupby(["run", "client"])["commit"].min().groupby("run").max()
    later = jobs.loc[jobs["commit"] > jobs["run"].map(first)]
    found = staleness.by_client(stalesim.load(folder / name)).set_index("client")
    for column, mine in (("mean", jobs), ("steady mean", later)):
        wanted = mine.groupby("client")["staleness"].mean().astype(float)
        assert found[column].tolist() == pytest.approx(wanted.tolist()), column
    assert (found["mean"] != found["steady mean"]).all()


def test_a_timeline_has_the_laws_of_its_clients(folder: Path) -> None:
    timeline = stalesim.load(folder / "timeline")
    law = staleness.staleness_law(timeline, "base")
    assert law is not None
    assert len(stalesim.staleness_histogram(timeline, "base", law).axes) == 4


UNKNOWN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "by_client": (lambda s: staleness.by_client(s, "x"), "no variant 'x'; known are"),
    "histogram": (lambda s: staleness.histogram(s, "x"), "no variant 'x'; known are"),
    "law": (lambda s: staleness.staleness_law(s, "x"), "no variant 'x'; known are"),
    "figure": (lambda s: stalesim.staleness_histogram(s, "x"), "no variant 'x'"),
    "client": (
        lambda s: staleness.histogram(s, "base", 5),
        "client must be from 1 to 4 in group 'base', got 5",
    ),
    "quantity": (
        lambda s: staleness.by_client_group(s, "age"),
        "quantity must be one of contribution, got 'age'",
    ),
    "embeddings": (
        lambda s: staleness.by_client_group(s, "embedding"),
        "quantity must be one of contribution, got 'embedding'",
    ),
    "embeddings of clients": (
        lambda s: staleness.by_client(s, "base", "embedding"),
        "quantity must be one of contribution, got 'embedding'",
    ),
}
OF_LEARNING: dict[str, tuple[Callable[[Any], Any], str]] = {
    "curve": (lambda s: stalesim.mean_curve(s, "x"), "no variant 'x'; known are base"),
    "paired": (lambda s: stalesim.paired.against(s, "x"), "no variant 'x'"),
}


@pytest.mark.parametrize("name", ["run", "timeline"])
@pytest.mark.parametrize("case", [*UNKNOWN, *OF_LEARNING])
def test_what_a_study_has_not_is_refused(folder: Path, name: str, case: str) -> None:
    if name == "timeline" and case in OF_LEARNING:
        return
    look, words = (UNKNOWN | OF_LEARNING)[case]
    with pytest.raises(ValueError, match=words):
        look(stalesim.load(folder / name))


def test_a_view_refuses_unknown_groups(folder: Path) -> None:
    view = timelines.view.view(stalesim.load(folder / "timeline"))
    with pytest.raises(ValueError, match="no variant 'x'; known are base"):
        view.entry("x")
