"""How stale work was: histograms of clients with their laws, and tails of groups."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from stalesim.analysis import figures, frames, staleness, tables
from stalesim.analysis.figures import report
from stalesim.analysis.figures.staleness import draw_histogram
from stalesim.analysis.figures.tails import tail
from stalesim.analysis.staleness import WEIGHTS
from stalesim.simulator.catalogue.algorithms.vafl.part import Vafl
from stalesim.simulator.files.study import StudyError
from stalesim.simulator.parts.base import tag
from stalesim.simulator.parts.catalogue import parts
from tests.support import SGD, scenario
from tests.unit.analysis.drawn import assert_apart, legend_of, points_of, titles_of
from tests.unit.analysis.studies import Fake


def test_histograms_of_clients_and_their_law() -> None:
    study = Fake()

    def law(client: int) -> tuple[np.ndarray, np.ndarray]:
        ages, success = np.arange(1, 30), 1 / (1 + client)
        return ages, success * (1 - success) ** (ages - 1)

    figure = figures.staleness_histogram(study, "async", law)
    assert len(figure.axes) == 3
    for client, axes in enumerate(figure.axes, start=1):
        stairs: Any = axes.patches[0]
        values, edges, _ = stairs.get_data()
        assert np.sum(values * np.diff(edges)) == pytest.approx(1)
        assert edges[0] == 0.5
        theory, mean = axes.get_lines()
        # 10,000 ages of standard deviation at most 3.5: six standard errors.
        assert points_of(mean)[0][0] == pytest.approx(1 + client, abs=0.21)
        ages, density = points_of(theory)
        assert axes.get_ylim()[1] > density.max()
        at = np.searchsorted(edges, ages[:3]) - 1
        np.testing.assert_allclose(values[at], density[:3], atol=0.03)
        title = axes.get_title(loc="left")
        assert title.startswith(f"client {client}\nmean ")
        assert re.search(rf"; 0\.[1-5] % > {axes.get_xlim()[1] - 0.5:g}$", title), title
    said = "Age of embeddings when used (server updates), after the start"
    assert figure.get_supxlabel() == said
    assert_apart(figure)
    table = study.tables["staleness"]
    table.loc[table["client"] == 2, "start"] = True
    titles = titles_of(figures.staleness_histogram(study, "async", law))
    assert titles[1] == "client 2\nnothing after the start"
    assert titles[0].startswith("client 1\nmean ")


def test_histograms_of_many_clients_of_no_staleness_and_of_nothing() -> None:
    figure = figures.staleness_histogram(Fake(("async",), clients=40), "async")
    titles = [title.split("\n")[0] for title in titles_of(figure)]
    assert (len(titles), titles[0], titles[-1]) == (12, "client 1", "client 40")
    assert "12 of 40 clients, evenly spread" in figure.get_suptitle()
    study = Fake(("async", "central"))
    table = study.tables["staleness"]
    study.tables["staleness"] = table.assign(low=0, high=1, quantity="contribution")
    study.tables["clients"]["staleness_mean"] = 0.0
    figure = figures.staleness_histogram(study, "async")
    assert titles_of(figure)[0] == "client 1\nmean 0"
    assert figure.get_supxlabel() == "Staleness of client updates (server updates)"
    with pytest.raises(ValueError, match="no staleness of a group 'central'"):
        figures.staleness_histogram(study, "central")


def test_bars_that_are_wider_than_a_commit_are_densities() -> None:
    bins = {"low": np.arange(1000), "high": np.arange(1, 1001), "count": 1}
    axes: Any = Figure().add_subplot()
    assert draw_histogram(axes, pd.DataFrame(bins), "k", 499.5) == "mean 499.5"
    assert draw_histogram(axes, pd.DataFrame(bins), "k", 1303.2) == "mean 1303"
    values, edges, _ = axes.patches[0].get_data()
    assert edges.size < 50
    np.testing.assert_allclose(values, 1e-3)


EXPONENTIAL: dict[str, Any] = {
    "protocol": {"kind": "asynchronous"},
    "clients": {"idle": None, "compute": {"law": "expon", "loc": 0, "scale": 2.0}},
    "algorithm": {"kind": "vafl", "upload": "all", "client_order": "upload_first"},
    "question": "why?",
}
GROUPS = {
    "fast": {"number": 1, "compute": {"law": "expon", "scale": 0.25}},
    "slow": {"number": 3, "compute": {"law": "expon", "scale": "1/m"}},
}


def _told(quantity: str = "embedding", **changes: Any) -> Fake:
    study = Fake(("async",), clients=4)
    table = study.tables["staleness"]
    study.tables["staleness"] = table.assign(quantity=quantity)
    tree = EXPONENTIAL | changes
    kind = tree["protocol"]["kind"]
    protocol = next(part for part in parts("protocols") if tag(part) == kind)
    facts = protocol.model_validate(tree["protocol"]).described(4)
    if tree["algorithm"]["kind"] == "vafl":
        vafl = Vafl(**tree["algorithm"], step_size=0.1, batch=2)
        facts["refreshes_all"] = vafl.refreshes_all
    for run in study.manifest["runs"]:
        run |= {"scenario": tree, "facts": facts, "num_clients": 4}
    return study


@pytest.mark.parametrize(("quantity", "first"), [("embedding", 1), ("contribution", 0)])
@pytest.mark.parametrize(
    ("clients", "rates"),
    [
        (EXPONENTIAL["clients"], [1, 1, 1, 1]),
        ({"compute": {"law": "expon", "scale": [1, 2, 4, 8]}}, [8, 4, 2, 1]),
        ({"compute": {"law": "expon", "scale": "1/m"}}, [1, 2, 3, 4]),
        ({"groups": GROUPS}, [4, 1, 2, 3]),
    ],
)
def test_staleness_laws_of_exponential_clients(
    clients: Any, rates: list[int], quantity: str, first: int
) -> None:
    study = _told(quantity, clients=clients)
    law = staleness.staleness_law(study, "async")
    assert law is not None
    drawn = figures.staleness_histogram(study, "async")
    assert drawn.get_supxlabel().endswith(", after the start")
    assert drawn.get_supylabel() == "Share per unit of staleness"
    means = sum(rates) / np.array(rates) - 1 + first
    table = staleness.by_client(study)
    assert table["theory"].to_numpy() == pytest.approx(means)
    # Each quantity has its own law where both are measured.
    both = pd.concat([study.tables["staleness"].assign(quantity=q) for q in WEIGHTS])
    study.tables["staleness"] = both
    of_work = staleness.by_client(study, "async", "contribution")["theory"]
    assert of_work.to_numpy() == pytest.approx(sum(rates) / np.array(rates) - 1)
    study.tables["staleness"] = both.loc[both["quantity"] == quantity]
    for run in study.manifest["runs"]:
        run["variant"] = "all"
    assert staleness.by_client(study, "all")["mean"].equals(table["mean"])
    for client, rate in enumerate(rates, start=1):
        ages, chances = law(client)
        p = rate / sum(rates)
        np.testing.assert_allclose(chances, p * (1 - p) ** (ages - first))
        assert ages[0] == first
        assert 1 - chances.sum() < 1e-6


@pytest.mark.parametrize(
    "changes",
    [
        {"protocol": {"kind": "synchronous"}},
        {"protocol": {"kind": "asynchronous", "staleness_bound": 5}},
        {"clients": None},
        {"clients": {"compute": {"law": "poisson", "mu": 2}}},
        {"clients": {"compute": {"law": "expon", "scale": {"law": "expon"}}}},
        {"clients": EXPONENTIAL["clients"] | {"power": {"path": "power.csv"}}},
        {"clients": {"compute": {"law": "expon", "shift": 0.1}}},
        {"clients": EXPONENTIAL["clients"] | {"idle": {"law": "expon"}}},
        {"clients": EXPONENTIAL["clients"] | {"upload": {"latency": {"law": "expon"}}}},
        {"server": {"service": {"law": "constant", "value": 1}}},
        {"algorithm": EXPONENTIAL["algorithm"] | {"upload": "batch"}},
        {"algorithm": EXPONENTIAL["algorithm"] | {"client_order": "query_first"}},
    ],
)
def test_staleness_law_that_is_not_known(changes: dict[str, Any]) -> None:
    study = _told(**changes)
    assert staleness.staleness_law(study, "async") is None
    assert staleness.by_client(study, "async")["theory"].isna().all()


def test_staleness_law_where_more_is_set_to_nothing() -> None:
    clients = EXPONENTIAL["clients"] | {"number": 4, "compute_per": "job", "join": 0}
    study = _told(clients=clients, server={"service": None})
    assert staleness.staleness_law(study, "async") is not None
    # The start of one of the runs was not over, so that it has no steady state.
    table = study.tables["staleness"]
    study.tables["staleness"] = table.assign(start=table["run"] == 2)
    assert staleness.staleness_law(study, "async") is None
    assert staleness.staleness_law(Fake(), "async") is None
    assert staleness.staleness_law(Fake(), "central") is None
    # No entry that is left out hides a law.
    tree = scenario(SGD, {"clients": {"compute": {"law": "expon"}}, "looks": [3, 5]})
    study = _told("contribution", **tree.model_dump(mode="json"))
    assert staleness.staleness_law(study, "async") is not None


def test_report_draws_laws_but_no_staleness_that_is_always_zero() -> None:
    study = _told()
    drawn = dict(report.standard(study))
    assert [len(axes.get_lines()) for axes in drawn["staleness-async"].axes] == [2] * 4
    table = study.tables["staleness"]
    study.tables["staleness"] = table.assign(low=0, high=1)
    assert "staleness-async" not in dict(report.standard(study))


def test_report_shows_how_stale_twelve_of_many_variants_were() -> None:
    from stalesim.analysis.figures import staleness as histograms

    drawn = {
        name: figure.get_suptitle().split("\n")[-1]
        for number in (25, 2)
        for name, figure in histograms.standard(
            Fake(tuple(f"{number}-{n}" for n in range(number)), clients=1)
        )
    }
    many = {name: last for name, last in drawn.items() if "-25-" in name}
    assert len(many) == 12
    assert {"staleness-25-0", "staleness-25-24"} < {*many}
    assert {*many.values()} == {"12 of 25 variants drawn"}
    assert "drawn" not in drawn["staleness-2-1"]


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
    parted = staleness.by_client_group(study)
    assert parted["clients"].tolist() == ["all", "fast (1)", "slow (2)"] * 2
    whole = tables.staleness(study, "embedding").loc[["async", "sync"], "mean"].tolist()
    assert parted["mean"].tolist()[::3] == pytest.approx(whole)
    assert "client_group" not in frames.joined(Fake(("async",)), "staleness")
    assert "client_group" not in frames.joined(study, "evaluations")


def test_a_tail_is_what_is_counted_of_each_staleness_and_beyond() -> None:
    ages = np.array([0, 0, 0, 1, 1, 3, 7, 7, 7, 9])
    low, count = np.unique(ages, return_counts=True)
    at, part = tail(pd.DataFrame({"low": low, "high": low + 1, "count": count}))
    for staleness_, found in zip(at[1:], part[1:], strict=True):
        assert found == pytest.approx((ages >= staleness_).mean())
    assert (at[0], part[0]) == (0, 1)


def test_tiers_have_a_line_each_on_shared_axes() -> None:
    study = tiered()
    figure = figures.staleness_tails(study)
    assert titles_of(figure) == ["async", "async private"]
    assert legend_of(figure) == ["all clients", "fast (1)", "slow (2)"]
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert len({axes.get_xlim() for axes in shown}) == 1
    ages = study.tables["staleness"].query("run < 5")
    for line, clients in zip(
        shown[0].get_lines(), ((1, 2, 3), (1,), (2, 3)), strict=True
    ):
        mine = ages[ages["client"].isin(clients)]
        for at, part in zip(*points_of(line), strict=True):
            wanted = mine.loc[mine["low"] >= at, "count"].sum() / mine["count"].sum()
            assert part == pytest.approx(wanted)
    # Groups that are equally stale are drawn once.
    table = study.tables["staleness"]
    first = table[table["run"] < 5]
    again = first.assign(run=first["run"] + 5)
    study.tables["staleness"] = pd.concat([first, again], ignore_index=True)
    assert titles_of(figures.staleness_tails(study)) == ["async and 1 alike"]


def test_figures_of_a_sweep_over_a_group_of_clients_name_it() -> None:
    study = tiered()
    for run in study.manifest["runs"]:
        run["parameters"] = {"clients.groups.slow.compute.scale": run["run"] % 2}
    said = "swept: compute.scale of slow"
    assert said in figures.staleness_histogram(study, "async").get_suptitle()
    assert said in str(figures.staleness_tails(study).get_label())
    assert "swept: " not in str(figures.staleness_tails(tiered()).get_label())


def test_without_tiers_groups_share_one_panel() -> None:
    study = Fake(("async", "sync"))
    figure = figures.staleness_tails(study)
    (axes,) = figure.axes
    assert len(axes.get_lines()) == 2
    assert legend_of(figure) == ["async", "sync"]
    many = figures.staleness_tails(Fake(tuple(f"v{n}" for n in range(10))))
    assert len(titles_of(many)) == 10
    table = study.tables["staleness"]
    late = table["run"] >= 5
    table.loc[late, "low"] = 0
    table.loc[late, "high"] = 1
    assert "never stale: sync" in str(figures.staleness_tails(study).get_label())
    table["low"], table["high"] = 0, 1
    with pytest.raises(StudyError, match="was ever stale"):
        figures.staleness_tails(study)
