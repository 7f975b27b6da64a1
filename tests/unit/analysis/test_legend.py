import html
import io
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from stalesim.analysis import facts, figures, legend, staleness, tables
from stalesim.analysis.figures import layout
from stalesim.analysis.frames import first_metric
from stalesim.analysis.markup import markdown
from stalesim.analysis.statistics import t_interval
from stalesim.analysis.targets import final_values
from stalesim.simulator.cli import printing
from tests.unit.analysis.studies import (
    Curves,
    Fake,
    arrives,
    client_of,
    histogram_of,
    run_of,
)


def test_results() -> None:
    study = Fake()
    study.manifest["runs"].append(run_of(20, "sync", 5, stop="incomplete"))
    table = tables.results(study).set_index("group")
    assert table.index.tolist() == ["async", "async private", "sync", "central"]
    times = table["time to 0.8 (s)"]
    assert [(c.known, c.replicates) for c in times] == [(5, 5), (5, 5), (0, 5), (5, 5)]
    shown = tables.plain(table.reset_index()).set_index("variant")
    assert shown.loc["sync", "time to 0.8 (s)"] == "> 100 (0/5)"
    values = final_values(study, "test_accuracy").query("group == 'async'")["value"]
    mean, low, high = t_interval(values.to_numpy())
    assert table.loc["async", "final test accuracy"][:3] == (mean, low, high)
    # 10,000 ages a client of means 2, 3, 4; the standard error of their mean is 0.02
    found = tables.staleness(study, "embedding").loc["async"]
    assert found["mean"] == pytest.approx(3, abs=0.06)
    assert "Embedding age" in legend.legend(study)
    shown = {
        "embedding age": found["mean"],
        "largest embedding age": found["max"],
        "staleness": 1.5,
        "largest staleness": 7,  # of contributions
    }
    for column, value in shown.items():
        assert table.loc["async", column] == value
        assert math.isnan(table.loc["central", column])
    assert table.loc["async", "commits"] == 250
    assert table.loc["async", "MB"] == pytest.approx(250.25)  # 250 * 1.001
    assert "largest staleness" not in tables.brief(table)


def test_megabytes_that_differ_much_say_of_how_many_messages_they_are() -> None:
    study = Curves({"a": [[0.1, 0.9]] * 2, "b": [[0.1, 0.9]] * 2, "c": [[0.1]]})
    assert not any("MB differ" in note for note in legend.details(study))
    table = study.tables["evaluations"]
    rare = table["run"] >= 2
    table.loc[rare, ["upload_bytes", "download_bytes"]] //= 20
    table["messages"] = np.where(rare, 4, 40)  # 10.01 MB in 40, a twentieth in 4
    said = "MB differ 20-fold: a 40 messages of 250 kB, b 4 messages of 125 kB"
    assert said in legend.details(study)


def test_a_study_of_which_all_runs_diverged_has_a_table_and_no_target() -> None:
    study = Fake(("async", "sync"))
    for run in study.manifest["runs"]:
        run["stop"] = "diverged"
    study.manifest["scenario"] |= {"claims": []}
    study.manifest["scenario"]["stop"] = {"time": 10}
    evaluations = study.tables["evaluations"]
    study.tables["evaluations"] = evaluations.assign(test_accuracy=math.nan)
    table = tables.plain(tables.results(study))
    assert table["time to target (s)"].tolist() == ["never (0/5)"] * 2
    assert table["final test accuracy"].tolist() == ["- (0/5)"] * 2
    assert "all runs diverged" in legend.legend(study)["Time"]
    assert "What ended" not in " ".join(legend.remarks(study))
    assert "time-to-target" not in dict(figures.standard(study))


def test_a_search_is_about_its_objective() -> None:
    study = Fake()
    tune = {"over": {"a": [1, 2]}, "objective": "test_loss@30s"}
    study.manifest["scenario"] |= {"tune": tune}
    metrics = ["test_accuracy", "test_loss"]
    study.manifest["scenario"]["evaluate"]["metrics"] = metrics
    assert first_metric(study.manifest) == "test_loss"
    study.manifest["scenario"]["tune"]["objective"] = None
    assert first_metric(study.manifest) == metrics[0]


def test_results_fit_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("all-nonconvex-16", "sync")
    study = Fake(names, noise=0.01)
    for run in study.manifest["runs"]:
        run |= {"commits": 20_000, "stop": "commits"}
    study.manifest["scenario"]["stop"]["target"] = None
    study.tables["clients"]["staleness_mean"] = 1036.31
    console = Console(width=80, record=True, file=io.StringIO())
    monkeypatch.setattr(printing, "out", console)
    results = tables.plain(tables.brief(tables.results(study)))
    printing.show_table("title", results, whole=False)
    shown = console.export_text()
    assert max(map(len, shown.splitlines())) <= 80
    for name in (*names, "20000", "250.2", "1036"):
        assert f" {name} " in shown
    assert len([line for line in shown.splitlines() if line.strip()]) <= 6
    assert "continued" not in shown


def test_next_steps_judge_claims_where_there_are_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = Fake(("async",))
    study.folder = Path("mine")
    monkeypatch.setattr(printing, "show_results", lambda *_, **__: None)
    for claims, is_named in (([], False), ([{"faster": "async"}], True)):
        console = printing.out.__class__(width=80, record=True, file=io.StringIO())
        monkeypatch.setattr(printing, "out", console)
        study.manifest["scenario"]["claims"] = claims
        printing.close(study, ())
        assert ("stalesim check mine" in console.export_text()) == is_named


def test_staleness_is_weighed_by_uses() -> None:
    study = Fake(("async",))
    often, seldom = np.full(300, 2), np.full(100, 10)
    study.tables["clients"] = pd.concat(
        [client_of(0, 0, often), client_of(0, 1, seldom)]
    )
    study.tables["staleness"] = pd.concat(
        [histogram_of(0, 0, often), histogram_of(0, 1, seldom)]
    )
    ages = tables.staleness(study, "embedding").loc["async"]
    assert ages.tolist() == [4, 10]
    contributions = study.tables["clients"].assign(
        num_applied=[30, 10], staleness_mean=[1.0, 5.0], staleness_max=[2, 9]
    )
    study.tables["clients"] = contributions.drop(
        columns=["embedding_staleness_mean", "embedding_staleness_max"]
    )
    assert tables.staleness(study).loc["async"].tolist() == [2, 9]


def test_what_went_wrong_is_said() -> None:
    study = Curves(
        {"a": [arrives(1), arrives(2), arrives(99, 2)], "b": [[], [], []]},
        {("a", 2): "diverged", **{("b", n): "stalled" for n in range(3)}},
    )
    table = tables.plain(tables.results(study)).set_index("variant")
    column = "time to 0.855 (s)"
    assert table.loc["a", column].endswith("(2/3)")
    assert table.loc["a", "final test accuracy"] == "0.9 ± 0 (2/3)"
    assert table.loc["b", column] == "never (0/3)"
    assert table.loc["b", "final test accuracy"] == "- (0/3)"
    assert "0.855, 95 % of the best variant's final" in legend.legend(study)["Time"]
    remarks = legend.remarks(study)
    assert "What ended the runs: stalled (3), time (2), diverged (1)." in remarks
    late = "1 of 3 runs of a, 3 of 3 runs of b did not reach test_accuracy 0.855."
    assert late in remarks
    share = "95 % of the best variant's final value"
    assert f"Target: {share}, as none is stated." in remarks


def test_variants_that_are_late_are_counted_after_the_third() -> None:
    late = {name: [arrives(1), arrives(99, 2)] for name in "abcd"}
    remarks = legend.remarks(Curves(late, {}))
    three = ", ".join(f"1 of 2 runs of {name}" for name in "abc")
    said = f"{three}, and runs of 1 more variant did not reach test_accuracy "
    assert any(line.startswith(said) for line in remarks)


def test_a_budget_that_ended_runs_is_named() -> None:
    def said(stops: dict) -> list[str]:
        study = Curves({"a": [arrives(1)] * 2, "b": [arrives(2)] * 2}, stops)
        return [line for line in legend.remarks(study) if "budget was" in line]

    a, b = (dict.fromkeys([(name, 0), (name, 1)], "privacy") for name in "ab")
    assert said(a) == ["2 runs of a ended when the privacy budget was spent."]
    whole = "4 runs of 2 variants ended when the privacy budget was spent."
    assert (said(a | b), said({})) == ([whole], [])


def test_histogram_of_a_client_and_of_all() -> None:
    study = Fake(("async",))
    alone = staleness.histogram(study, "async", 1)
    assert alone["count"].sum() == 5 * 2_000
    assert (alone["density"] * (alone["high"] - alone["low"])).sum() == pytest.approx(1)
    assert staleness.histogram(study, "async")["count"].sum() == 3 * 5 * 2_000
    with pytest.raises(ValueError, match="one of embedding, got 'contribution'"):
        staleness.histogram(study, "async", quantity="contribution")
    none = alone.iloc[:0]
    assert math.isnan(staleness.mean(none))
    assert math.isnan(staleness.quantile(none, 0.5))


def test_quantiles_of_ages_are_numpys() -> None:
    study = Fake(("async",))
    generator = np.random.default_rng(5)
    ages = generator.geometric(0.1, 4_000)
    study.tables["staleness"] = histogram_of(0, 1, ages)
    frame = staleness.histogram(study, "async")
    assert staleness.mean(frame) == pytest.approx(ages.mean(), rel=1e-12)
    for part in (0.01, 0.5, 0.9, 0.95, 1.0):
        expected = np.quantile(ages, part, method="inverted_cdf")
        assert staleness.quantile(frame, part) == expected
    table = staleness.by_client(study, "async")
    assert table["client"].tolist() == [1]
    assert table["quantity"].tolist() == ["embedding"]  # not of contributions
    assert staleness.by_client_group(study)["quantity"].tolist() == ["embedding"]
    assert table["count"].tolist() == [4_000]
    assert table["95 %"].tolist() == [np.quantile(ages, 0.95, method="inverted_cdf")]


def test_wide_bins_count_as_evenly_filled() -> None:
    frame = pd.DataFrame({"low": [0, 1, 10], "high": [1, 2, 20], "count": [40, 40, 20]})
    assert staleness.mean(frame) == pytest.approx(0.4 + 0.2 * 14.5)
    assert staleness.quantile(frame, 0.4) == 0
    assert staleness.quantile(frame, 0.41) == 1
    assert staleness.quantile(frame, 0.82) == 10
    assert staleness.quantile(frame, 0.9) == 14
    assert staleness.quantile(frame, 1.0) == 19


def test_markdown() -> None:
    frame = pd.DataFrame(
        {"who | what": ["a|b", "c\nd"], "n": [1, 2], "x": [0.123456, math.nan]}
    )
    assert markdown(frame) == (
        "| who &#124; what | n | x |\n"
        "| --- | ---: | ---: |\n"
        "| a&#124;b | 1 | 0.1235 |\n"
        "| c d | 2 |  |\n"
    )
    assert markdown(frame[:0]).count("\n") == 2


def test_markdown_shows_words_as_they_are() -> None:
    words = [
        *("[/b]", "$x$ $$y$$", "_a_ b_c __d__", r"back\slash \* \(x\)", "~~gone~~ ~a~"),
        *("`c` **b** *i* [l](http://e) | x", "![i](u) [r][s] [^1]", "<b>&amp;</b>"),
        *("# no head", "- 1", "=1", "test_accuracy 0.9 [0.8, 1]", "<http://e> <!--"),
    ]
    frame = pd.DataFrame({word: [word] for word in words})
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    shown = page.render(markdown(frame))
    cells = re.findall(r"<t[hd]>(.*?)</t[hd]>", shown)
    assert [html.unescape(cell) for cell in cells] == [*words, *words]
    assert set(re.findall(r"<(\w+)", shown)) == {
        *("table", "thead", "tbody", "tr", "th", "td"),
    }


def test_scales_of_data_are_told() -> None:
    study = Fake()
    for run in study.manifest["runs"]:
        run["dataset"] = "digits"
    assert not any(note.startswith("data:") for note in legend.details(study))
    for run in study.manifest["runs"]:
        run |= {"dataset": "mnist", "scaling": "unit: 0 to 255 become 0 to 1"}
    said = "data: mnist; scale unit: 0 to 255 become 0 to 1"
    assert said in legend.details(study)
    assert said not in legend.remarks(study)


def test_a_part_of_mnist_says_how_to_get_all() -> None:
    (line,) = facts.words_on_data([("mnist5k (3, 8)", None)])
    assert line.endswith("5,000 of MNIST's images (all: stalesim data get mnist)")
    assert not facts.words_on_data([("usps (zip)", None), (None, None)])


def test_without_a_server_updates_are_the_workers() -> None:
    study = Fake()
    assert "server updates" in tables.plain(tables.results(study))
    assert "Server updates" in legend.legend(study)
    for run in study.manifest["runs"]:
        run["facts"] = {"averages": True}
    heads = tables.plain(tables.results(study))
    assert "worker updates" in heads
    assert "server updates" not in heads
    assert legend.legend(study)["Staleness"].startswith("worker updates between")
    assert "Server updates" not in legend.legend(study)
    assert layout.axis(study, "commits")[0] == "Worker updates"
