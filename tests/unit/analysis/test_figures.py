import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch

from stalesim.analysis import figures, staleness, style
from stalesim.analysis.figures import report
from stalesim.analysis.figures import staleness as staleness_figures
from stalesim.analysis.figures.files import DOTS_PER_INCH, save_figure
from stalesim.analysis.targets import default_target, final_values, times_to_target
from stalesim.simulator.algorithms.vafl.part import Vafl
from stalesim.simulator.config.catalogue import parts
from stalesim.simulator.config.parts import tag
from stalesim.simulator.trace import StudyError
from tests.support import SGD, scenario
from tests.unit.analysis.studies import REPLICATES, SPEEDS, Fake


def _stairs(axes: Axes) -> StepPatch:
    (stairs,) = axes.patches
    assert isinstance(stairs, StepPatch)
    return stairs


def _texts(figure: Figure) -> list[str]:
    found = [text.get_text() for axes in figure.axes for text in axes.texts]
    found += [axes.get_title(loc="left") for axes in figure.axes]
    return [*found, figure.get_suptitle()]


def _outside(figure: Figure) -> None:
    """Checks that legend and axes share no pixel, and that nothing leaves the page."""
    with style.context():
        figure.savefig("/dev/null", format="png")
    page = figure.bbox
    legends = [legend.get_window_extent() for legend in figure.legends]
    for legend in legends:
        assert legend.y0 >= page.y0
        assert legend.x1 <= page.x1
    for axes in figure.axes:
        box = axes.get_tightbbox()
        assert box is not None
        assert box.x0 >= page.x0
        assert box.x1 <= page.x1
        assert box.y0 >= page.y0
        assert box.y1 <= page.y1
        for legend in legends:
            assert not box.overlaps(legend)


def test_convergence_draws_means_on_bands_beside_a_legend() -> None:
    study = Fake()
    figure = figures.convergence(study)
    (axes,) = figure.axes
    lines = axes.get_lines()
    assert [line.get_linestyle() for line in lines] == ["-", "--", "-", "--"]
    colors = [to_hex(line.get_color()).upper() for line in lines]
    assert colors[:3] == [*[style.OKABE_ITO[0]] * 2, style.OKABE_ITO[1]]
    finals = final_values(study, "test_accuracy")
    expected = finals.loc[finals["group"] == "central", "value"].mean()
    np.testing.assert_allclose(np.asarray(lines[3].get_ydata()), expected)
    assert len(axes.collections) == 3
    highest_band = max(band.get_zorder() for band in axes.collections)
    assert highest_band < min(line.get_zorder() for line in lines)
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert shown == list(SPEEDS)
    assert axes.get_xlabel() == "Virtual time (s)"
    assert axes.get_ylabel() == "Test accuracy"
    assert "digits-part" in figure.get_suptitle()
    _outside(figure)


def test_convergence_in_megabytes_and_of_a_decay() -> None:
    (axes,) = figures.convergence(Fake(), "optimality_gap", "upload_bytes").axes
    assert axes.get_xlabel() == "Data uploaded (MB)"
    assert np.asarray(axes.get_lines()[0].get_xdata())[-1] == pytest.approx(250)
    assert axes.get_yscale() == "log"


def test_convergence_says_that_runs_diverged_or_are_missing() -> None:
    study = Fake(("async", "sync"))
    study.manifest["runs"][0]["stop"] = "diverged"
    study.manifest["status"] = "incomplete"
    figure = figures.convergence(study)
    shown = figure.legends[0].get_texts()[0].get_text()
    assert shown == "async (1 of 5 diverged)"
    assert "incomplete" in figure.get_suptitle()


def test_a_centralised_study_is_a_curve() -> None:
    (axes,) = figures.convergence(Fake(("central",))).axes
    assert len(np.asarray(axes.get_lines()[0].get_xdata())) > 2


def test_single_replicates_are_drawn_without_bands() -> None:
    study = Fake()
    study.manifest["runs"] = study.manifest["runs"][::REPLICATES]
    (axes,) = figures.convergence(study).axes
    assert np.isfinite(np.asarray(axes.get_lines()[0].get_ydata(), float)).all()
    _outside(figures.speed_up_bars(study, "test_accuracy", 0.8))


def test_many_groups_with_awkward_names() -> None:
    names = tuple(
        f"_a long $name$, q={number}, " + "word " * 12 for number in range(20)
    )
    figure = figures.convergence(Fake(names))
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]
    assert len(titles) == 20
    assert titles[3].strip().startswith(r"_a long \$name\$, q=3,")
    _outside(figure)
    _outside(figures.speed_up_bars(Fake(names), "test_accuracy", 0.5))


def test_looks_of_private_groups() -> None:
    looks = style.looks(["private-a", "a", "b", "c, private, q=1", "c, q=1"])
    assert looks["private-a"].color == looks["a"].color
    assert looks["c, private, q=1"].color == looks["c, q=1"].color
    assert looks["private-a"].linestyle == style.DASHED
    assert len({look.color for look in looks.values()}) == 3
    assert style.looks(["private"])["private"].linestyle == style.DASHED


def test_staleness_histogram() -> None:
    study = Fake()

    def law(client: int) -> tuple[np.ndarray, np.ndarray]:
        ages = np.arange(1, 30)
        success = 1 / (1 + client)
        return ages, success * (1 - success) ** (ages - 1)

    figure = figures.staleness_histogram(study, "async", law)
    assert len(figure.axes) == 3
    for client, axes in enumerate(figure.axes, start=1):
        values, edges, _ = _stairs(axes).get_data()
        assert np.sum(values * np.diff(edges)) == pytest.approx(1)
        assert edges[0] == 0.5
        mean, theory = axes.get_lines()
        # 10,000 ages of standard deviation at most 3.5: six standard errors.
        assert np.asarray(mean.get_xdata())[0] == pytest.approx(1 + client, abs=0.21)
        ages, density = theory.get_data()
        at = np.searchsorted(edges, np.asarray(ages)[:3]) - 1
        np.testing.assert_allclose(values[at], np.asarray(density)[:3], atol=0.03)
        assert axes.get_title(loc="left").startswith(f"client {client}\nmean ")
        last = axes.get_xlim()[1] - 0.5
        title = axes.get_title(loc="left")
        assert re.search(rf"; 0\.[1-5] % > {last:g}$", title), title
    said = "Age of embeddings when used (commits), after the start"
    assert figure.get_supxlabel() == said
    _outside(figure)


def test_a_client_that_did_nothing_after_the_start_has_an_empty_panel() -> None:
    study = Fake()
    table = study.tables["staleness"]
    table.loc[table["client"] == 2, "start"] = True

    def law(client: int) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(3), np.full(3, 1 / 3)

    titles = [
        axes.get_title(loc="left")
        for axes in figures.staleness_histogram(study, "async", law).axes
    ]
    assert titles[1] == "client 2\nnothing after the start"
    assert titles[0].startswith("client 1\nmean ")


def test_staleness_histogram_of_many_clients_shows_twelve() -> None:
    figure = figures.staleness_histogram(Fake(("async",), clients=40), "async")
    titles = [axes.get_title(loc="left").split("\n")[0] for axes in figure.axes]
    assert len(titles) == 12
    assert (titles[0], titles[-1]) == ("client 1", "client 40")
    assert "12 of 40 clients" in figure.get_suptitle()


def test_staleness_histogram_of_nothing() -> None:
    with pytest.raises(ValueError, match="no staleness of a group 'central'"):
        figures.staleness_histogram(Fake(), "central")


def test_staleness_that_is_always_zero() -> None:
    study = Fake(("async",))
    table = study.tables["staleness"]
    study.tables["staleness"] = table.assign(low=0, high=1, quantity="contribution")
    figure = figures.staleness_histogram(study, "async")
    assert figure.axes[0].get_title(loc="left") == "client 1\nmean 0"
    assert figure.get_supxlabel() == "Staleness of contributions (commits)"


def test_bands_of_an_accuracy_end_at_one() -> None:
    study = Fake(("async",), noise=0.3)
    (axes,) = figures.convergence(study).axes
    heights = axes.collections[0].get_datalim(axes.transData).intervaly
    assert tuple(heights) == (0, 1)
    study.tables["evaluations"]["test_loss"] = study.tables["evaluations"].pop(
        "test_accuracy"
    )
    (axes,) = figures.convergence(study, "test_loss").axes
    assert axes.collections[0].get_datalim(axes.transData).intervaly[1] > 1


EXPONENTIAL: dict[str, Any] = {
    "protocol": {"kind": "asynchronous"},
    "clients": {"idle": None, "compute": {"law": "expon", "loc": 0, "scale": 2.0}},
    "algorithm": {"kind": "vafl", "upload": "all", "client_order": "upload_first"},
    "question": "why?",
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
        facts |= Vafl(**tree["algorithm"], step_size=0.1, batch=2).described()
    for run in study.manifest["runs"]:
        run |= {"scenario": tree, "facts": facts, "num_clients": 4}
    return study


@pytest.mark.parametrize(("quantity", "first"), [("embedding", 1), ("contribution", 0)])
def test_staleness_law_of_exponential_clients(quantity: str, first: int) -> None:
    law = staleness.staleness_law(_told(quantity), "async")
    assert law is not None
    ages, chances = law(3)
    assert ages[0] == first
    np.testing.assert_allclose(chances, 0.25 * 0.75 ** (ages - first))
    assert 1 - chances.sum() < 1e-6


GROUPS = {
    "fast": {"number": 1, "compute": {"law": "expon", "scale": 0.25}},
    "slow": {"number": 3, "compute": {"law": "expon", "scale": "1/m"}},
}


@pytest.mark.parametrize(("quantity", "first"), [("embedding", 1), ("contribution", 0)])
@pytest.mark.parametrize(
    ("clients", "rates"),
    [
        ({"compute": {"law": "expon", "scale": [1, 2, 4, 8]}}, [8, 4, 2, 1]),
        ({"compute": {"law": "expon", "scale": "1/m"}}, [1, 2, 3, 4]),
        ({"groups": GROUPS}, [4, 1, 2, 3]),
    ],
)
def test_staleness_laws_of_exponential_clients_that_differ(
    clients: Any, rates: list[int], quantity: str, first: int
) -> None:
    law = staleness.staleness_law(_told(quantity, clients=clients), "async")
    assert law is not None
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
    assert staleness.staleness_law(_told(**changes), "async") is None


def test_staleness_law_where_more_is_set_to_nothing() -> None:
    clients = EXPONENTIAL["clients"] | {"number": 4, "compute_per": "job", "join": 0}
    study = _told(clients=clients, server={"service": None})
    assert staleness.staleness_law(study, "async") is not None
    with pytest.raises(ValueError, match="no group 'unknown'; known are async"):
        staleness.staleness_law(study, "unknown")
    # The start of one of the runs was not over, so that it has no steady state.
    table = study.tables["staleness"]
    study.tables["staleness"] = table.assign(start=table["run"] == 2)
    assert staleness.staleness_law(study, "async") is None
    assert staleness.staleness_law(Fake(), "async") is None
    assert staleness.staleness_law(Fake(), "central") is None


def test_no_entry_that_is_left_out_hides_a_law() -> None:
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
    study = Fake(tuple(f"v{number}" for number in range(25)))
    drawn = {
        name: figure.get_suptitle().split("\n")[-1]
        for name, figure in report.standard(study)
        if name.startswith("staleness-")
    }
    assert len(drawn) == 12
    assert {"staleness-v0", "staleness-v24"} < set(drawn)
    assert set(drawn.values()) == {"12 of 25 variants drawn"}
    few = dict(report.standard(Fake(("v0", "v1"))))
    assert "drawn" not in few["staleness-v1"].get_suptitle()


def test_speed_up_bars_say_who_did_not_arrive() -> None:
    study = Fake()
    figure = figures.speed_up_bars(study, "test_accuracy", 0.8)
    (axes,) = figure.axes
    texts = _texts(figure)
    assert "not reached (0 of 5)" in texts
    bars = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
    assert [bar.get_width() for bar in bars if bar.get_hatch()] == [100]
    # Those of the slow side were last seen at 100 s, each at its pair's own ratio.
    mine = times_to_target(study, "test_accuracy", 0.8)
    fast = mine.loc[mine["group"] == "async", "high"]
    assert f"≥ {np.median(100 / fast):.3g}× (5 of 5)" in texts
    assert axes.get_xlabel() == "Virtual time to test accuracy ≥ 0.8 (s)"
    _outside(figure)
    assert "1× (5 of 5)" in _texts(figures.speed_up_bars(study, "test_accuracy", 0.2))
    at_once = figures.speed_up_bars(study, "test_accuracy", 0.05)
    assert "at once (5 of 5)" in _texts(at_once)


def note_of(figure: Figure) -> str:
    """Returns the note below a figure, in one line."""
    return " ".join(figure.get_supxlabel().split())


def test_notes_say_what_is_drawn_and_no_more() -> None:
    study = Fake(noise=0.3)
    assert note_of(figures.convergence(study)) == (
        "Lines: means over 5 replicates; bands: 95 % t-intervals, cut at 0 and 1; "
        "dashed: mean final value"
    )
    calm = Fake(("async", "sync"))
    assert note_of(figures.convergence(calm)) == (
        "Lines: means over 5 replicates; bands: 95 % t-intervals"
    )
    calm.manifest["runs"][0]["stop"] = "diverged"
    assert "over 4 to 5 replicates" in note_of(figures.convergence(calm))
    calm.manifest["runs"] = calm.manifest["runs"][::REPLICATES]
    alone = "Lines: one replicate of each"
    assert note_of(figures.convergence(calm)) == alone


def test_commits_of_unlike_content_are_said_to_be() -> None:
    study = Fake(("async", "sync"))
    table = study.tables["evaluations"]
    table["contributions"] = table["commits"] * np.where(table["run"] < 5, 1, 8)
    # Three of the second group are in a buffer that is not full at the end.
    table["contributions"] += np.where(table["run"] < 5, 0, 3)
    said = "a commit applies 1 to 8 contributions, by group"
    assert said in note_of(figures.convergence(study, against="commits"))
    assert said not in note_of(figures.convergence(study, against="time"))
    table["contributions"] = 3 * table["commits"]
    same = figures.convergence(study, against="commits")
    assert "contributions" not in note_of(same)


def test_intervals_of_times_are_closed_where_all_arrived() -> None:
    study = Fake(("async", "async private"))
    figure = figures.speed_up_bars(study, "test_accuracy", 0.8)
    markers = [line.get_marker() for line in figure.axes[0].get_lines()]
    assert ">" not in markers
    assert markers.count("|") == 4
    assert note_of(figure) == (
        "Bars: median; lines: its range (94 % interval); ×: times as fast as the "
        "slowest, median over pairs of replicates; (k of n): replicates that reached "
        "it; resolution 4 s (between evaluations)"
    )
    open_one = Fake()
    open_one.manifest["scenario"]["stop"] = {}
    best = default_target(open_one)
    of_best = figures.speed_up_bars(open_one, best.metric, best.value)
    assert note_of(of_best).endswith("target: 95 % of the best group's final value")
    some = figures.speed_up_bars(Fake(), "test_accuracy", 0.8)
    assert "; hatched: half or more did not, to where they tried;" in note_of(some)
    slow = Fake(("async", "sync"))
    table = slow.tables["evaluations"]
    table.loc[table["run"] == 0, "test_accuracy"] = 0.1
    opened = figures.speed_up_bars(slow, "test_accuracy", 0.8)
    assert ">" in [line.get_marker() for line in opened.axes[0].get_lines()]
    assert "an arrow where it is unbounded" in note_of(opened)


def test_no_interval_goes_beyond_the_runs() -> None:
    """Two times, of which one is 4 s: their t-interval went on for hours."""
    study = Fake(("async", "async private"))
    study.manifest["runs"] = [
        run for run in study.manifest["runs"] if run["replicate"] < 2
    ]
    table = study.tables["evaluations"]
    early = (table["run"] == 0) & (table["time"] >= 4)
    table.loc[early, "test_accuracy"] = 0.9
    (axes,) = figures.speed_up_bars(study, "test_accuracy", 0.8).axes
    ends = [x for line in axes.get_lines() for x in line.get_xdata()]
    assert max(ends) <= table["time"].max()


def test_groups_of_a_study_without_variants_are_called_by_what_is_swept() -> None:
    study = Fake(("base, b=1", "base, b=2"))
    for run in study.manifest["runs"]:
        run["variant"] = "base"
    figure = figures.convergence(study)
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert shown == ["b=1", "b=2"]
    title = figures.staleness_histogram(study, "base, b=1").get_suptitle()
    assert title.splitlines()[1] == "b=1; 1 of 2 swept points"
    alone = Fake(("base",))
    assert figures.convergence(alone).legends == []


def test_title_and_note_can_be_taken_off() -> None:
    heights = []
    for off in (False, True):
        figure = figures.convergence(Fake(), size=style.size("one"))
        if off:
            figure.suptitle("")
            figure.supxlabel("")
        figure.draw_without_rendering()
        heights.append(figure.axes[0].get_position().height)
        texts = {figure.get_suptitle(), figure.get_supxlabel()}
        assert (texts == {""}) == off
    assert heights[1] > heights[0] + 0.1


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("$x$", r"\$x\$"),
        ("_hidden", " _hidden"),
        ("back\\slash", "back\\slash"),
        ("ctl\x1b[31m\x07", r"ctl\x1b[31m\x07"),
        ("\u202eabc", r"\u202eabc"),
        ("two\nlines", "two lines"),
        ("\u5feb", r"\u5feb"),  # DejaVu Sans has no such letter
        ("\u03b5 é", "\u03b5 é"),
    ],
)
def test_text_in_figures_is_literal(name: str, shown: str) -> None:
    assert style.text(name) == shown
    figure = figures.convergence(Fake((name, "other")))
    assert figure.legends[0].get_texts()[0].get_text() == shown
    figure.draw_without_rendering()  # a letter that is missing would be a warning


def test_a_name_of_thousands_of_letters_leaves_room_for_the_figure() -> None:
    names = tuple(f"{number}{'a' * 10_000}{number}" for number in range(5))
    figure = figures.convergence(Fake(names))
    assert max(figure.get_size_inches()) < 12
    _outside(figure)
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert [text[0] for text in shown] == [text[-1] for text in shown] == list("01234")


def test_report_is_reproducible(tmp_path: Path) -> None:
    names = ("async", "async private", "central")
    forms = ("png", "pdf")
    paths = report.save(Fake(names), tmp_path / "one", forms)
    assert [path.relative_to(tmp_path).as_posix() for path in paths] == [
        f"one/figures/{name}.{form}"
        for name in (
            "convergence-time",
            "convergence-commits",
            "staleness",
            "staleness-async",
            "staleness-async-private",
            "time-to-target",
        )
        for form in forms
    ]
    again = report.save(Fake(names), tmp_path / "two", forms)
    for one, two in zip(paths, again, strict=True):
        content = one.read_bytes()
        assert content == two.read_bytes()
        assert b"CreationDate" not in content


def test_a_figure_is_saved_as_matplotlib_would_lay_it_out(tmp_path: Path) -> None:
    ours, plain = (
        figures.convergence(Fake(("async", "async private"))) for _ in range(2)
    )
    (path,) = save_figure(ours, tmp_path / "ours")
    with style.context():
        plain.savefig(tmp_path / "plain.png", dpi=DOTS_PER_INCH)
    assert path.read_bytes() == (tmp_path / "plain.png").read_bytes()


def test_report_of_one_group_without_staleness(tmp_path: Path) -> None:
    names = [path.stem for path in report.save(Fake(("central",)), tmp_path)]
    assert names == ["convergence-time", "convergence-commits"]


def test_report_names_files_apart() -> None:
    names = staleness_figures._file_names(["a=1", "a 1", "../b", "β"])
    assert list(names.values()) == ["a-1", "a-1-2", "b", "group"]


def test_report_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "figures").write_text("in the way")
    with pytest.raises(StudyError, match="must be written, but"):
        report.save(Fake(("central",)), tmp_path)
