"""Tables and the figure of what attacks recovered."""

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis import style
from stalesim.analysis.markup import markdown
from stalesim.analysis.statistics import t_interval
from stalesim.simulator.extras.papers.attacks import quality, report

SHAPE = (8, 9)
SAMPLES = np.random.default_rng(0).random((20, 72))
NOISE = {"none": 0.0, "much": 0.3}
RUNS, COMMITS = 3, (0, 100)


def _probes(batch: tuple[int, ...] = (0,)) -> pd.DataFrame:
    """Two groups of three runs, logistic regression, one output."""
    rng, rows = np.random.default_rng(1), []
    for number, (group, scale) in enumerate(NOISE.items()):
        for replicate in range(RUNS):
            for commit in COMMITS:
                ids = [(3 * replicate + commit + i) % 20 for i in batch]
                ones = np.ones((len(ids), 1))
                x = np.concatenate([SAMPLES[ids], ones], axis=1)
                gradient = 0.5 * x.mean(axis=0)
                rows.append(
                    {
                        "run": RUNS * number + replicate,
                        "group": group,
                        "commit": commit,
                        "time": 0.1 * commit,
                        "client": 1,
                        "job": commit,
                        "samples": [*ids, report.PADDING],
                        "message": list(gradient + scale * rng.normal(size=73)),
                        "gradient": list(gradient),
                    }
                )
    return pd.DataFrame(rows)


def _recovered(**options: object) -> pd.DataFrame:
    attack = report.linear_attack(1)
    return report.recover(_probes(), SAMPLES, attack, SHAPE, **options)  # pyright: ignore


def test_each_probe_has_its_qualities() -> None:
    table = _recovered()
    assert len(table) == len(NOISE) * RUNS * len(COMMITS)
    expected = ["run", "group", "commit", "time", "client", "job"]
    expected += ["sample", "num_samples", *report.METRICS, "true", "found"]
    assert list(table.columns) == expected
    assert (table["num_samples"] == 1).all()
    row = table.iloc[-1]
    true = SAMPLES[row["sample"]].reshape(SHAPE)
    np.testing.assert_array_equal(row["true"], true)
    measured = [row[metric] for metric in report.METRICS]
    np.testing.assert_allclose(
        measured, [*quality.compare(true, row["found"]).values()]
    )
    clear = table[table["group"] == "none"]
    np.testing.assert_allclose(clear["correlation"], 1)
    assert (clear["psnr"] > 100).all()
    assert (table.loc[table["group"] == "much", "correlation"] < 0.9).all()


def test_a_message_or_the_gradient_in_it_is_attacked() -> None:
    np.testing.assert_allclose(_recovered(what="gradient")["correlation"], 1)


def test_a_batch_is_compared_with_its_members_and_shown_as_their_mean() -> None:
    attack = report.linear_attack(1)
    table = report.recover(_probes((0, 1, 2)), SAMPLES, attack, SHAPE)
    row = table.iloc[0]
    assert row["num_samples"] == 3
    np.testing.assert_allclose(row["found"], row["true"])
    members = [quality.correlation(SAMPLES[i], row["found"].ravel()) for i in range(3)]
    assert row["correlation"] == pytest.approx(np.mean(members))


def test_weights_are_needed_for_a_regulariser() -> None:
    probes = _probes()
    attack = report.linear_attack(1, l2=0.5)
    weights = np.linspace(-1, 1, 73)
    pulled = 0.5 * np.append(weights[:-1], 0)
    probes["state"] = [list(weights)] * len(probes)
    probes["message"] = [list(np.asarray(g) + pulled) for g in probes["gradient"]]
    table = report.recover(probes, SAMPLES, attack, SHAPE)
    np.testing.assert_allclose(table["correlation"], 1)


def test_a_group_has_a_mean_over_runs_and_its_interval() -> None:
    table = _recovered()
    both = report.summary(table, ("group",))
    assert list(both["metric"]) == [*report.METRICS] * 2
    one = both[(both["group"] == "much") & (both["metric"] == "correlation")].iloc[0]
    rows = table[table["group"] == "much"]
    each = rows.groupby("run")["correlation"].mean().to_numpy()
    assert one[["mean", "low", "high"]].tolist() == list(t_interval(each))
    assert one["replicates"] == RUNS
    each_commit = report.summary(table)
    assert len(each_commit) == len(NOISE) * len(COMMITS) * len(report.METRICS)
    assert markdown(each_commit).startswith("| group | commit | metric | replicates |")


def test_messages_without_an_image_are_counted_and_left_out() -> None:
    probes = _probes()
    probes["message"] = [[0.0] * 73, *probes["message"][1:]]
    attack = report.linear_attack(1)
    table = report.recover(probes, SAMPLES, attack, SHAPE)
    assert np.isnan(table.loc[0, "psnr"])
    found = report.summary(table).set_index(["group", "commit", "metric"])
    assert found.loc[("none", 0, "psnr"), "blank"] == 1
    assert found.loc[("none", 0, "psnr"), "replicates"] == RUNS - 1
    assert found.loc[("none", 100, "psnr"), "blank"] == 0
    figure = report.grid(table, "lost")
    assert "no image" in [axes.get_xlabel() for axes in figure.axes]


def test_the_grid_has_a_row_per_group_and_a_column_per_commit() -> None:
    table = _recovered()
    figure = report.grid(table, "gradient inversion")
    assert len(figure.axes) == len(NOISE) * len(COMMITS)
    assert [axes.get_title(loc="left") for axes in figure.axes[:2]] == [
        "commit 0",
        "commit 100",
    ]
    assert [axes.get_ylabel() for axes in figure.axes[::2]] == list(NOISE)
    assert figure.axes[0].get_xlabel() == "r = 1.00"
    shown = np.asarray(figure.axes[0].get_images()[0].get_array())
    assert shown.shape == (8, 9 + 1 + 9)
    np.testing.assert_allclose(shown[:, :9], table["true"].iloc[0])
    with style.context():
        figure.savefig("/dev/null", format="png")
    page = figure.bbox
    for axes in figure.axes:
        box = axes.get_tightbbox()
        assert box is not None
        assert page.x0 <= box.x0
        assert box.x1 <= page.x1
        assert page.y0 <= box.y0
        assert box.y1 <= page.y1


def test_the_grid_shows_seven_commits_and_colours() -> None:
    table = _recovered().iloc[:1]
    many = pd.concat([table.assign(commit=commit) for commit in range(20)])
    many["true"] = many["found"] = [np.full((3, 8, 9), 0.5)] * 20
    figure = report.grid(many, "colours")
    assert len(figure.axes) == report.MAX_COLUMNS
    assert figure.axes[-1].get_title(loc="left") == "commit 19"
    assert np.shape(figure.axes[0].get_images()[0].get_array()) == (8, 19, 3)
