"""Tables for print: numbers with intervals, LaTeX that compiles, Markdown."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from stalesim.analysis import legend, tables
from stalesim.analysis.frames import UNFINISHED
from stalesim.analysis.markup import markdown
from stalesim.analysis.statistics import MIDDLE
from stalesim.simulator.cli import printing, results, tabulating
from stalesim.simulator.cli.commands import app
from stalesim.simulator.files import study as trace
from stalesim.simulator.parts.errors import UserError
from tests.unit.analysis.studies import Curves, Fake, Grid

CLAIM = {"higher": "a", "than": "b", "says": "x"}
CLAIM["metric"] = "test_accuracy"
AWKWARD = r"50 % & $x_1$ #{2} ~^\ ε ≥ é 中"


def curves() -> Curves:
    return Curves(
        {
            "a": [[0.1, 0.8, 0.9], [0.1, 0.7, 0.8], [0.1, 0.9, 0.9]],
            "b": [[0.1, 0.5, 0.6], [0.1, 0.6, 0.6], [0.1, 0.4]],
        },
        claims=[CLAIM],
        stop={"target": {"test_accuracy": 0.7}},
    )


def test_numbers_are_those_of_the_curves() -> None:
    table = tables.results(curves(), at=[1, 2]).set_index("group")
    final = table.loc["a", "final test accuracy"]
    # The t-interval of these three ends at 1.01, which no accuracy is.
    assert final[:3] == pytest.approx((2.6 / 3, 0.8, 0.9))
    first = table.loc["b", "test accuracy after 1 s"]
    assert first.estimate == pytest.approx(0.5)
    later = table.loc["b", "test accuracy after 2 s"]
    assert (later.estimate, later.known, later.replicates) == (0.6, 2, 3)
    assert table.loc["b", "time to 0.7 (s)"].estimate == np.inf
    assert table.loc["a", "time to 0.7 (s)"].known == 3


def test_words_say_what_is_missing() -> None:
    table = tables.plain(tables.results(curves(), at=[2])).set_index("variant")
    assert table.loc["b", "test accuracy after 2 s"] == "0.6 ± 0 (2/3)"
    assert table.loc["b", "time to 0.7 (s)"] == "> 2 (0/3)"
    assert table.loc["a", "final test accuracy"] == "0.867 [0.800, 0.900]"


def test_captions_say_how_closely_times_are_known() -> None:
    said = "to test_accuracy 0.7; median [range (75 % interval)]; resolution 1 s"
    assert f"{said} (between evaluations); {MIDDLE};" in legend.caption(curves())
    assert "After" not in legend.caption(curves())
    # Of two replicates one was seen at 0.7 at 2 s, the other never: > 1, not > 2.
    half = Curves({"a": [[0.1, 0.2, 0.8], [0.1, 0.2, 0.3, 0.4]], "b": [[0.9], [0.9]]})
    half.manifest["scenario"]["stop"]["target"] = {"test_accuracy": 0.7}
    assert tables.plain(tables.results(half)).iloc[0, 1] == "> 1 (1/2)"
    said = "after >: half or more did not reach it; more than half had not by then"
    assert said in legend.legend(half)["Time"]
    assert f"where both reached it; {said}" in legend.legend(half)["Time"]
    earlier = "table jobs has all. After 1.5 s: as evaluated at 1 s."
    assert earlier in legend.caption(curves(), [1.5])
    assert "exact binomial ranks" in legend.method(curves())


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (tables.Cell(0.2713, 0.161, 0.381, 5, 5, symmetric=True), "0.27 ± 0.11"),
        (tables.Cell(0.91, 0.902, 0.918, 5, 5, symmetric=True), "0.9100 ± 0.0080"),
        (tables.Cell(12345.6, 12000, 12691.2, 5, 5, symmetric=True), "12346 ± 346"),
        (tables.Cell(3e-8, 2e-8, 4e-8, 5, 5, symmetric=True), "3e-08 ± 1e-08"),
        (tables.Cell(3500, 1166, 20440, 5, 5, symmetric=False), "3500 [1166, 20440]"),
        (tables.Cell(40, 38.5, 42.25, 5, 5, symmetric=False), "40.0 [38.5, 42.3]"),
        (tables.Cell(75, 60.6, 90.4, 5, 5, symmetric=False), "75 [60, 91]"),
        (
            tables.Cell(40, 38, np.inf, 4, 5, symmetric=False),
            "40 [≥ 38] (4/5)",
        ),
        (tables.Cell(500, 500, 500, 5, 5, symmetric=False), "500 [500, 500]"),
        (tables.Cell(np.inf, 38, np.inf, 2, 5, False, 61.5), "> 61.5 (2/5)"),
        (tables.Cell(0.5, np.nan, np.nan, 1, 1, symmetric=True), "0.5"),
    ],
)
def test_a_number_and_its_interval_have_the_same_decimals(
    cell: tables.Cell, words: str
) -> None:
    frame = pd.DataFrame({"x": [cell, tables.Cell(1, 1, 1, 1, 1, symmetric=True)]})
    assert tables.plain(frame)["x"].iloc[0] == words


def test_an_epsilon_says_what_it_protects() -> None:
    points = [("a", {}, [0.9] * 3), ("plain", {}, [0.95] * 3)]
    study = Grid(points, {"a": [1.0, 3.0, 2.0]})
    table = tables.results(study)
    assert table["ε"].tolist() == ["3 (formal)", ""]
    assert table["protects"].tolist() == ["a sample", ""]
    caption = legend.caption(study)
    said = (
        "spent most, in any replicate, by rdp at δ = 1e-05; epsilon protects a sample."
    )
    assert said in caption
    assert "; mean and largest of all client updates that were used" in caption
    latex = tables.to_latex(table, caption, "x")
    assert r" & 3 (formal) & " in latex
    assert r" & a sample \\" in latex
    assert "epsilon protects a sample" in latex
    assert "ε" not in tables.results(curves())


def test_captions_say_which_runs_are_missing_or_ended_early() -> None:
    study = curves()
    assert "Incomplete" not in legend.caption(study)
    assert "stop.target" not in legend.caption(study)
    for run in study.manifest["runs"][:2]:
        run["stop"] = "target"
    assert "Runs that reached stop.target ended there" in legend.caption(study)
    for run in study.manifest["runs"][1:]:
        run["stop"] = UNFINISHED[0]
    assert "Incomplete: 1 of 6 runs have ended" in legend.caption(study)


def test_a_column_per_number() -> None:
    table = tables.numbers(tables.results(curves()))
    assert table["final test accuracy: low"].iloc[0] == pytest.approx(0.8)
    assert "time to 0.7 (s): high" in table
    assert not any(isinstance(cell, tables.Cell) for cell in table.to_numpy().ravel())


def test_markdown_has_a_row_per_group() -> None:
    lines = markdown(tables.plain(tables.results(curves()))).splitlines()
    assert len(lines) == 4
    assert {line.count("|") for line in lines} == {lines[0].count("|")}


def test_plain_text_is_plain_in_latex() -> None:
    frame = pd.DataFrame({"group": [AWKWARD], "x": [float("nan")]})
    text = tables.to_latex(frame, AWKWARD, AWKWARD)
    assert text.isascii()
    assert r"50 \% \& \$x\_1\$ \#\{2\} \textasciitilde{}\textasciicircum{}" in text
    assert re.search(r"\\label\{tab:[A-Za-z0-9-]+\}", text)
    depth = 0
    for sign in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if sign == "{" else -1
        assert depth >= 0
    assert depth == 0


def test_rows_of_latex_have_as_many_cells_as_columns() -> None:
    table = tables.results(curves(), at=[2])
    rows = [
        line.strip()
        for line in tables.to_latex(table, "c", "l").splitlines()
        if line.endswith(r" \\")
    ]
    assert len(rows) == 3
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {
        len(table.columns) - 1
    }
    assert r"$0.867 \;[0.800, 0.900]$" in rows[1]
    assert r"$0.00 \pm 0.00$" not in rows[1]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs LaTeX")
def test_latex_compiles(tmp_path: Path) -> None:
    study = curves()
    body = tables.to_latex(tables.results(study, at=[2]), AWKWARD, "one")
    body += tables.to_latex(tables.verdicts(study), legend.caption(study), "two")
    body += tables.to_latex(pd.DataFrame({AWKWARD: [AWKWARD]}), "c", "three")
    document = (
        "\\documentclass{article}\n\\usepackage{booktabs}\n"
        f"\\begin{{document}}\n{body}\\end{{document}}\n"
    )
    (tmp_path / "t.tex").write_text(document)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "t.pdf").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["t.tex", "t.md", "t.csv"])
def test_files(name: str, tmp_path: Path) -> None:
    tabulating.write(Fake(("async", "sync")), [20], tmp_path / name, latex=False)  # pyright: ignore
    text = (tmp_path / name).read_text()
    assert "async" in text
    assert "test accuracy after 20 s" in text.replace(r" \\ ", " ")


def test_the_first_line_of_every_table_names_the_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    study: Any = Fake(("async", "sync"))  # of digits-part
    study.folder = tmp_path
    monkeypatch.setattr(trace, "load", lambda folder: study)
    for shows in (
        lambda: printing.close(study, ()),
        lambda: tabulating.write(study, [], None, latex=False),
        lambda: results.check([tmp_path]),
    ):
        shows()
        assert capsys.readouterr().out.strip().startswith("fake on digits-part")
    for name in ("t.md", "t.tex", "t.csv"):
        tabulating.write(study, [], tmp_path / name, latex=False)
    assert (tmp_path / "t.md").read_text().startswith("fake on digits-part. Time")
    assert r"\caption{fake on digits-part. Time" in (tmp_path / "t.tex").read_text()
    assert r"\label{tab:fake}" in (tmp_path / "t.tex").read_text()
    assert {*pd.read_csv(tmp_path / "t.csv")["data"]} == {"digits-part"}


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"ends in \.tex, \.md, \.csv, got x\.doc"):
        tabulating.write(Fake(), [], Path("x.doc"), latex=False)  # pyright: ignore
    with pytest.raises(UserError, match="that can be written"):
        tabulating.write(Fake(), [], tmp_path / "no" / "x.md", latex=False)  # pyright: ignore
    result = CliRunner().invoke(app, ["tables", str(tmp_path / "nothing")])
    assert isinstance(result.exception, UserError)
