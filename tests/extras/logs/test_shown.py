"""Imported logs in reports and terminals."""

import csv
import html
from pathlib import Path

from stalesim.analysis import page
from stalesim.simulator.extras.logs.timelines import import_log
from stalesim.simulator.files.study import load
from stalesim.simulator.parts.errors import one_line, printable
from tests.unit.analysis.test_page import read
from tests.unit.test_hostile import NAMES, everything, stalesim


def test_an_imported_log_has_a_page(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    rows = [f"{c},{t},{t + 1 + c}" for c in (1, 2) for t in range(0, 40, 4)]
    log.write_text("\n".join(["client,read_time,arrived_time", *rows]), "utf-8")
    reader = read(page.html(import_log(log, tmp_path / "imported")))
    assert "the log of a real system" in reader.text
    assert "Nothing is drawn." in reader.text
    assert "log-again" not in reader.text, "nothing but its own command repeats it"
    assert not [link for link in reader.links if link.startswith("data:")]


def test_the_labels_of_a_log_are_literal(tmp_path: Path) -> None:
    log = tmp_path / "[red]$x$ \x1b[31m.csv"
    with log.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("client", "read_time", "arrived_time"))
        for number, name in enumerate(NAMES):
            writer.writerow((name, number, number + 3))
    out = tmp_path / "out"
    shown = everything(stalesim("log", "import", log, "-o", out))
    assert f"{one_line(log.stem)}: speed and staleness" in shown
    assert set(load(out).table("clients")["client_label"]) == {*NAMES}
    everything(stalesim("report", out))
    text = (out / "report.html").read_text(encoding="utf-8")
    assert f"<h1>{html.escape(printable(log.stem))}</h1>" in text
