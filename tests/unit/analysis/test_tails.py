"""How stale work was, pooled and by groups of clients."""

import numpy as np
import pandas as pd
import pytest

from stalesim.analysis import figures, frames, summary
from stalesim.analysis.figures.tails import tail
from stalesim.analysis.staleness import by_client_group
from stalesim.simulator.trace import StudyError
from tests.unit.analysis.studies import Fake


def tiered(names: tuple[str, ...] = ("async", "async private")) -> Fake:
    """Returns a study of a fast client and two slow ones."""
    study = Fake(names)
    table = study.tables["clients"]
    group = table["client"].map({1: "fast", 2: "slow", 3: "slow"})
    study.tables["clients"] = table.assign(client_group=group, client_label=None)
    return study


def test_rows_of_clients_have_their_groups() -> None:
    study = tiered(("async", "sync"))
    table = frames.joined(study, "staleness")
    assert len(table) == len(study.tables["staleness"])
    groups = table["client"].map({1: "fast", 2: "slow", 3: "slow"})
    assert (table["client_group"] == groups).all()
    assert set(table["variant"]) == {"async", "sync"}
    parts = by_client_group(study)["clients"]
    assert parts.tolist() == ["all", "fast (1)", "slow (2)"] * 2
    assert by_client_group(study)["mean"].tolist()[::3] == [
        pytest.approx(summary.staleness(study).loc[name, "mean"])
        for name in ("async", "sync")
    ]
    plain = frames.joined(Fake(("async",)), "staleness")
    assert "client_group" not in plain
    assert "client_group" not in frames.joined(study, "evaluations")


def test_a_tail_is_what_is_counted_of_each_staleness_and_beyond() -> None:
    ages = np.array([0, 0, 0, 1, 1, 3, 7, 7, 7, 9])
    low, count = np.unique(ages, return_counts=True)
    at, part = tail(pd.DataFrame({"low": low, "high": low + 1, "count": count}))
    for staleness, found in zip(at[1:], part[1:], strict=True):
        assert found == pytest.approx((ages >= staleness).mean())
    assert (at[0], part[0]) == (0, 1)


def test_tiers_have_a_line_each_on_shared_axes() -> None:
    study = tiered()
    figure = figures.staleness_tails(study)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    titles = [axes.get_title(loc="left") for axes in shown]
    assert titles == ["async", "async private"]
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["all clients", "fast (1)", "slow (2)"]
    assert len({axes.get_xlim() for axes in shown}) == 1
    everyone, fast, slow = shown[0].get_lines()
    ages = study.tables["staleness"].query("run < 5")
    for line, clients in ((everyone, (1, 2, 3)), (fast, (1,)), (slow, (2, 3))):
        mine = ages[ages["client"].isin(clients)]
        for at, part in zip(*map(np.asarray, line.get_data()), strict=True):
            wanted = mine.loc[mine["low"] >= at, "count"].sum() / mine["count"].sum()
            assert part == pytest.approx(wanted)


def test_without_tiers_groups_share_one_panel() -> None:
    figure = figures.staleness_tails(Fake(("async", "sync")))
    (axes,) = figure.axes
    assert len(axes.get_lines()) == 2
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["async", "sync"]
    many = figures.staleness_tails(Fake(tuple(f"v{n}" for n in range(10))))
    assert sum(axes.get_visible() for axes in many.axes) == 10


def test_what_is_never_stale_is_named() -> None:
    study = Fake(("async", "sync"))
    table = study.tables["staleness"]
    late = table["run"] >= 5
    table.loc[late, "low"] = 0
    table.loc[late, "high"] = 1
    assert "never stale: sync" in str(figures.staleness_tails(study).get_label())
    table["low"], table["high"] = 0, 1
    with pytest.raises(StudyError, match="was ever stale"):
        figures.staleness_tails(study)


def test_groups_that_are_equally_stale_are_drawn_once() -> None:
    study = tiered(("async", "sync"))
    table = study.tables["staleness"]
    first = table[table["run"] < 5]
    again = first.assign(run=first["run"] + 5)
    study.tables["staleness"] = pd.concat([first, again], ignore_index=True)
    figure = figures.staleness_tails(study)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    titles = [axes.get_title(loc="left") for axes in shown]
    assert titles == ["async and 1 alike"]
