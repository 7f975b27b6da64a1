"""A study's page: whole, self-contained, escaped, the same for the same study."""

import base64
import re
import shutil
import subprocess
import sys
import tomllib
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from stalesim import simulator
from stalesim.analysis import page
from stalesim.analysis.page import pictures, writing
from stalesim.analysis.tables import plain, results
from stalesim.simulator.files.study import Study, load, write_manifest
from stalesim.simulator.parts.errors import StudyError
from stalesim.simulator.scenario.reading import loads
from stalesim.simulator.scenario.setting import WorldScenario
from stalesim.simulator.studies.saved import record

SCRIPT = '<script>alert("x")</script>'
SCENARIO = f"""\
name: tiny
question: 'What of {SCRIPT} & co?'
source: 'A source, {SCRIPT}'
seed: 1
replicates: 3
problem:
  data: {{kind: breast_cancer, scale: standard}}
  partition: {{kind: vertical, parties: 3}}
clients:
  compute: {{law: poisson, mu: "2*m", scale: "1/(2*M)", shift: 1.0e-6}}
  upload: {{latency: {{law: expon, scale: 0.1}}}}
protocol: {{kind: asynchronous}}
algorithm: {{kind: vafl, step_size: 0.1, batch: 8, upload: batch}}
stop: {{time: 8}}
evaluate: {{every: {{time: 2}}}}
engine: {{mode: compiled}}
variants:
  async: {{clients: {{upload: null}}}}
  'sync {SCRIPT}': {{protocol: {{kind: synchronous}}}}
claims:
  - faster: async
    than: 'sync {SCRIPT}'
    to: {{test_accuracy: 0.5}}
    says: 'figure 2 {SCRIPT}'
"""
SECTIONS = ("results", "figures", "runs", "method", "scenario", "repeat")
VOID = ("meta", "img", "link", "br", "hr", "input", "source", "wbr", "col", "base")
ROOT = Path(__file__).parents[3]


class Reader(HTMLParser):
    """Reads a page, and fails where a tag is not closed or something is loaded."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.sources: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []
        assert len(set(self.ids)) == len(self.ids)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "iframe", "object", "embed", "link", "base")
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names)
        assert not [name for name in names if name.startswith("on")]
        given = dict(attrs)
        self.ids += [str(given["id"])] if "id" in given else []
        self.sources += [str(given[k]) for k in ("src", "srcset") if k in given]
        self.links += [str(given["href"])] if "href" in given else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self.open and self.open[-1] == "style":
            assert "@import" not in data
            assert "url(" not in data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def read(text: str) -> Reader:
    """Returns a page that was read; it must be whole and load nothing."""
    assert text.startswith("<!DOCTYPE html>")
    assert "default-src 'none'" in text
    reader = Reader(text)
    assert all(source.startswith("data:image/") for source in reader.sources)
    for link in reader.links:
        assert link.startswith("data:") or link.removeprefix("#") in reader.ids
    assert "script" not in reader.open
    assert set(SECTIONS) <= set(reader.ids)
    return reader


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("page") / "study"
    return simulator.simulate(loads(SCENARIO, "here"), folder)


@pytest.fixture(scope="module")
def text(study: Study) -> str:
    return page.html(study)


def changed(study: Study, folder: Path, change: Any) -> Study:
    """Returns a copy of a study with another manifest."""
    shutil.copytree(study.folder, folder)
    manifest = load(folder).manifest
    change(manifest)
    write_manifest(folder, manifest)
    return load(folder)


def test_claims_that_all_hold_are_counted_in_words() -> None:
    said = [writing._verdicts(pd.DataFrame({"verdict": ["holds"] * n})) for n in (2, 3)]
    assert said == ["Both claims hold.", "All 3 claims hold."]


def test_a_page_is_whole_and_tells_everything(study: Study, text: str) -> None:
    reader = read(text)
    said = reader.text
    assert "Complete: 6 of 6 runs have ended." in said
    assert "claims" in reader.ids
    assert re.search(r"The claim holds\.|1 claim: [a-z ]+ \(1\)\.", said)
    for cell in plain(results(study)).iloc[0][:3]:
        assert cell in said
    assert len(reader.sources) >= 4
    assert all(source.startswith("data:image/svg+xml") for source in reader.sources)
    environment = study.manifest["environment"]
    for known in (
        study.manifest["started"],
        str(study.manifest["runs"][0]["seed"]),
        f"jax=={environment['jax']}",
        environment["platform"],
        f"products {environment['products']}",
        "stalesim run tiny.yaml -o tiny-again",
        "poisson(mu=2*m loc=0 scale=1/(2*M) shift=1e-06)",
        "clients.upload removed",
        "time 8.0 virtual s",
        "Common random numbers",
        "Warm-up: none",
    ):
        assert known in said, known


def test_what_a_user_wrote_is_text_and_no_markup(text: str) -> None:
    assert "<script" not in text
    reader = read(text)
    for begin in ("What of", "A source,", "sync", "figure 2"):
        assert f"{begin} {SCRIPT}" in reader.text


def test_the_scenario_of_a_page_can_be_run(text: str) -> None:
    reader = read(text)
    address = next(link for link in reader.links if link.startswith("data:"))
    scenario = base64.b64decode(address.partition(",")[2]).decode()
    assert loads(scenario, "page") == loads(SCENARIO, "here")
    assert " ".join(scenario.split()) in reader.text


def test_the_same_study_gives_the_same_page(
    study: Study, text: str, tmp_path: Path
) -> None:
    other = changed(study, tmp_path / "elsewhere", lambda manifest: None)
    written = page.write(other)
    assert written == other.folder / "report.html"
    assert written.read_bytes() == text.encode()


def test_an_interrupted_study_says_what_is_missing(
    study: Study, tmp_path: Path
) -> None:
    def interrupt(manifest: dict[str, Any]) -> None:
        manifest.update(status="incomplete", interrupted=True)
        reason = f"must be a number, got {SCRIPT}"
        manifest["runs"][1].update(stop="failed", stop_reason=reason)
        del manifest["runs"][1]["rows"]
        for run in manifest["runs"][4:]:
            run.update(stop="incomplete", stop_reason="the run has not ended")
            for key in ("commits", "virtual_s", "elapsed_s", "rows"):
                del run[key]

    partial = changed(study, tmp_path / "partial", interrupt)
    reader = read(page.html(partial))
    assert "Interrupted: 3 of 6 runs have ended, 1 failed;" in reader.text
    assert f"async 1 failed must be a number, got {SCRIPT}" in reader.text
    assert f"sync {SCRIPT} 1 to 2 incomplete the run has not ended" in reader.text
    assert "3 planned of each variant, 1 to 2 of them ended" in reader.text


CLEAN, OTHER = "c0ffee" * 6 + "c0ff", "beef" * 10
EVIL = ["--plugin", "a.py", "--evil", "b", "--plugin", "c.py"]
BROUGHT = ["stalesim", "--plugin", "my laws.py", "run", "x.yaml"]
DIRTY = {"command": ["stalesim", "resume"], "commit": OTHER, "dirty": True}
CODE = "--plugin executes Python code with all rights of the user"
GONE = {"stop": "diverged", "stop_reason": "no longer finite", "diverged_at_commit": 17}
TOLD: dict[str, tuple[Any, list[str], list[str]]] = {
    "modules that bring parts": (
        {"command": BROUGHT, "continued": [{"command": ["stalesim", "resume", "x"]}]},
        [
            "stalesim --plugin 'my laws.py' run tiny.yaml -o tiny-again",
            "stalesim --plugin 'my laws.py' run x.yaml stalesim resume x",
            CODE,
        ],
        [],
    ),
    "other options are not the way to repeat": (
        {"command": ["stalesim", *EVIL, "run", "x"], "commit": "--upload-pack=evil"},
        ["stalesim --plugin a.py run tiny.yaml -o tiny-again"],
        ["git checkout"],
    ),
    "no local changes": (
        {"commit": CLEAN, "dirty": False, "continued": []},
        [f"The program's git commit: {CLEAN}."],
        ["Beware."],
    ),
    "local changes": (
        {"commit": CLEAN, "dirty": False, "continued": [DIRTY]},
        [
            f"The program's git commit: {CLEAN}, then {OTHER} with local changes.",
            "Beware. The program had local changes that are not in its git",
            f"git checkout {CLEAN}",
        ],
        [],
    ),
    "what a study read, by an entry point, say": (
        {
            "inputs": {f"{SCRIPT}.npz": {"sha256": "ab" * 32}},
            "modules": {"mine": {"sha256": "cd" * 32}},
        },
        [f"{SCRIPT}.npz SHA-256 {'ab' * 32}", f"mine SHA-256 {'cd' * 32}", CODE],
        [],
    ),
    "a run that diverged": (
        lambda manifest: manifest["runs"][0].update(GONE),
        ["async 0 diverged no longer finite, at commit 17"],
        [],
    ),
}


@pytest.mark.parametrize("case", TOLD)
def test_what_a_manifest_says_is_told(case: str, study: Study, tmp_path: Path) -> None:
    change, said, unsaid = TOLD[case]
    if isinstance(change, dict):
        change = partial(dict.update, **change)
    text = read(page.html(changed(study, tmp_path / "other", change))).text
    assert not [words for words in said if words not in text]
    assert not [words for words in unsaid if words in text]
    if CODE in said:
        before, _, _ = text.partition("Beware.")
        assert "stalesim --plugin" not in before  # said before the commands


def _no_end(manifest: dict[str, Any]) -> None:
    for run in manifest["runs"]:
        run.update(stop="incomplete")


DAMAGES: dict[str, tuple[Any, str]] = {
    "no runs at all": (lambda m: m.update(runs=[]), "no run that has ended"),
    "no ended run": (_no_end, "no run that has ended"),
    "no name": (lambda m: m.pop("name"), "name: Field required"),
    "no scenario": (lambda m: m.update(scenario=None), "scenario: Input should be"),
    "no data": (lambda m: m["scenario"].pop("problem"), "the entry 'problem'"),
    "no metric": (lambda m: m["scenario"]["evaluate"].clear(), "the entry 'metrics'"),
    "a run that is none": (lambda m: m["runs"].append(3), "runs.6: Input should be"),
    "no seed": (lambda m: m["runs"][0].pop("seed"), "runs.0.seed: Field required"),
    "an end without a time": (
        lambda m: m["runs"][0].update(virtual_s=None),
        "run 0: must have the entry 'virtual_s'",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_study_is_one_line(damage: str, study: Study, tmp_path: Path) -> None:
    change, said = DAMAGES[damage]
    with pytest.raises(StudyError, match=re.escape(said)) as caught:
        page.html(changed(study, tmp_path / "damaged", change))
    assert "\n" not in str(caught.value)


def test_lost_and_damaged_tables_are_one_line(study: Study, tmp_path: Path) -> None:
    for number, name in enumerate(("evaluations", "staleness", "clients")):
        damaged = changed(study, tmp_path / f"{number}", lambda manifest: None)
        for part in (damaged.folder / name).iterdir():
            part.write_bytes(b"not Parquet")
        with pytest.raises(StudyError, match="is damaged"):
            page.html(damaged)
    lost = changed(study, tmp_path / "lost", lambda manifest: None)
    shutil.rmtree(lost.folder / "evaluations")
    with pytest.raises(StudyError, match="is missing; restore it from a copy"):
        page.html(lost)


def test_a_page_that_cannot_be_written_is_one_line(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "html", lambda study: "a page")
    (tmp_path / "folder.html").mkdir()
    for file, said in (
        (tmp_path / "page.yaml", r"must be a file that ends in \.html"),
        (tmp_path / "no" / "page.html", "choose another file by --out"),
        (tmp_path / "folder.html", "choose another file by --out"),
    ):
        with pytest.raises(StudyError, match=said):
            page.write(study, file)
    assert not (tmp_path / "page.yaml").exists()
    assert page.write(study, tmp_path / "p.HTM").read_text("utf-8") == "a page"


def test_the_command_writes_a_page_or_one_line(study: Study, tmp_path: Path) -> None:
    def report(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "stalesim", "report"]
        command += map(str, arguments)
        return subprocess.run(command, capture_output=True, text=True, timeout=300)

    done = report(study.folder, "--out", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    read((tmp_path / "page.html").read_text(encoding="utf-8"))
    done = report(tmp_path / "nothing")
    assert done.returncode == 2
    assert done.stderr.startswith("stalesim: ")
    assert "a study, but there is no such folder; give" in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_a_timeline_has_a_page(tmp_path: Path) -> None:
    world = WorldScenario.model_validate(
        {
            "name": "world",
            "question": f"Who acts {SCRIPT}?",
            "replicates": 2,
            "clients": {
                "groups": {
                    "slow": {"number": 2, "compute": {"law": "expon", "scale": 2}},
                    "fast": {"number": 3, "compute": {"law": "expon"}},
                },
                "upload": {"bandwidth": 100},
            },
            "server": {"service": {"law": "expon", "scale": 0.01}},
            "job": {"upload_bytes": 10},
            "protocol": {"kind": "asynchronous"},
            "stop": {"time": 30},
            "sweep": {"job.upload_bytes": [10, 20]},
        }
    )
    text = page.html(record(world, tmp_path / "world"))
    assert "<script" not in text
    reader = read(text)
    assert "claims" not in reader.ids
    for known in (
        "speed and staleness",
        "shares of jobs; waiting after the start",
        "slow: expon(loc=0 scale=2 shift=0); fast: expon(",
        "one at the server, first in, first out",
        "job.upload_bytes 10, 20",
        "stalesim timeline world.yaml -o world-again",
        "None: there are no numerics.",
    ):
        assert known in reader.text, known
    assert len(reader.sources) >= 3


def test_a_large_figure_becomes_dots_and_looks_the_same_again() -> None:
    def drawn(points: int) -> dict[str, Any]:
        figure = Figure(figsize=(3, 2))
        x = np.arange(points, dtype=float)
        figure.add_subplot().scatter(x, x % 7, label="<b>")
        return pictures.picture("loss-over-a-and-b", figure, "all")

    small, large = drawn(10), drawn(20_000)
    assert small["source"].startswith("data:image/svg+xml;base64,")
    assert large["source"].startswith("data:image/png;base64,")
    assert len(large["source"]) < pictures.MOST_BYTES
    assert drawn(10) == small
    assert small["width"] == large["width"] == 330
    assert small["caption"] == "all"


def test_templates_are_part_of_the_distribution() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    globs = settings["tool"]["setuptools"]["package-data"]["stalesim.analysis.page"]
    packaged = {path for glob in globs for path in (ROOT / "analysis/page").glob(glob)}
    templates = set((ROOT / "analysis/page/templates").iterdir())
    assert templates
    assert templates <= packaged


BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    None,
)


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here")
@pytest.mark.parametrize("dark", [False, True])
def test_a_browser_shows_the_figures(text: str, tmp_path: Path, dark: bool) -> None:
    from matplotlib import image

    written, shot = tmp_path / "page.html", tmp_path / "shot.png"
    written.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [
            str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu",
            f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1000,3000",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            f"--screenshot={shot}", written.as_uri(),
        ],
        capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    pixels = (255 * image.imread(shot)[..., :3]).round().astype(int)
    assert (pixels[0, 0] < 64).all() == dark
    assert (pixels[0, 0] > 192).all() != dark
    shade = [0x4D, 0xAB, 0xDF] if dark else [0x00, 0x72, 0xB2]
    blue = (abs(pixels - shade) < 8).all(axis=-1)
    assert blue.sum() > 200, "the first curve of a figure"
