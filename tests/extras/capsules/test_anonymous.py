"""Anonymous capsules: nothing in them names who made them, and they can be repeated."""

import io
import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, PngImagePlugin

from stalesim import simulator
from stalesim.simulator.extras import capsules
from stalesim.simulator.extras.capsules import anonymous
from stalesim.simulator.extras.capsules.contents import PackedFile
from stalesim.simulator.files.study import Study, StudyError, load
from tests.commands import invoked

HIDDEN = {
    "user": "jdoe77",
    "host": "gpu7",
    "name": "Jána Dœ",
    "mail": "jana@lab.example.org",
    "remote": "jdoe-lab/secret-paper",
    "folder": "place-of-jana",
    "run of a tracker": "tracker-3f9a1c",
}
SCENARIO = """\
name: blind
replicates: 2
problem:
  data: {{kind: breast_cancer}}
  partition: {{kind: iid, clients: 3}}
clients: {{compute: {{law: empirical, column: seconds, path: {path}}}}}
protocol: {{kind: asynchronous}}
algorithm: {{kind: sgd, step_size: 0.1, batch: 4}}
stop: {{commits: 20}}
evaluate: {{every: {{commits: 10}}}}
"""


def _git(folder: Path, *words: str) -> None:
    own = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    subprocess.run(["git", "-C", folder, *words], check=True, env=own)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of an author, in which a study of a file of theirs was run."""
    folder = tmp_path_factory.mktemp("p") / HIDDEN["folder"]
    folder.mkdir()
    _git(folder, "init", "--quiet")
    _git(folder, "config", "user.name", HIDDEN["name"])
    _git(folder, "config", "user.email", HIDDEN["mail"])
    _git(folder, "remote", "add", "origin", f"git@example.org:{HIDDEN['remote']}.git")
    (folder / "times.csv").write_text("seconds\n1.0\n2.0\n4.0\n")
    text = SCENARIO.format(path=folder / "times.csv")
    (folder / "blind.yaml").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        simulator.simulate("blind.yaml", folder / "study")
    figures = folder / "study" / "figures"
    figures.mkdir()
    about = PngImagePlugin.PngInfo()
    about.add_itxt("Author", HIDDEN["name"], zip=True)
    Image.new("RGB", (8, 8), "red").save(figures / "curve.png", pnginfo=about)
    shutil.copy(figures / "curve.png", figures / "own.png")
    (figures / "curve.pdf").write_text(f"%PDF /Author ({HIDDEN['name']})")
    (figures / "curve.txt").write_text("A curve.\nby: stalesim 0.1.0 (commit 12ab)\n")
    board = folder / "study" / "export-tensorboard"
    board.mkdir()
    (board / "run").write_text(HIDDEN["run of a tracker"])
    return folder


@pytest.fixture
def study(place: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.chdir(place)
    monkeypatch.setattr(anonymous.getpass, "getuser", lambda: HIDDEN["user"])
    monkeypatch.setattr(anonymous.socket, "gethostname", lambda: "gpu7.example.org")
    found = load(place / "study")
    sealed: Any = found.manifest
    sealed["command"] = ["stalesim", "run", f"--out=//{HIDDEN['host']}/s"]
    sealed["continued"] = [{"command": [HIDDEN["user"]], "commit": "12ab"}]
    sealed["commit"] = "12ab34cd"
    return found


def texts(path: Path) -> Iterator[str]:
    """Yields all that a capsule holds: names, comments, texts, also of pictures."""

    def words(tree: Any) -> Iterator[str]:
        if isinstance(tree, dict):
            for key, value in tree.items():
                yield from (str(key), *words(value))
        elif isinstance(tree, list):
            for each in tree:
                yield from words(each)
        else:
            yield str(tree)

    yield path.read_bytes().decode("latin-1")
    with zipfile.ZipFile(path) as archive:
        yield archive.comment.decode()
        for each in archive.infolist():
            content = archive.read(each)
            yield f"{each.filename} {each.comment!r} {each.extra!r}"
            yield content.decode("latin-1")
            if each.filename.endswith(".png"):
                yield str(Image.open(io.BytesIO(content)).info)
            elif each.filename.endswith((".json", ".jsonld")):
                yield from words(json.loads(content))
            else:
                yield content.decode()


def found(path: Path) -> set[str]:
    """Returns which of the hidden names some part of a capsule has."""
    every = [text.lower() for text in texts(path)]
    return {
        what
        for what, name in HIDDEN.items()
        if any(name.lower() in text for text in every)
    }


def test_nothing_names_the_author(study: Study, tmp_path: Path) -> None:
    plain = capsules.write(study, tmp_path / "plain.zip")
    assert found(plain) == {"user", "host", "name", "folder"}
    path = capsules.write(study, tmp_path / "blind.zip", anonymous=True)
    assert found(path) == set()
    files = capsules.read(path).files
    assert {name for name in files if name.startswith("figures/")} == {
        "figures/curve.png",
        "figures/curve.txt",
    }
    assert all(b"12ab" not in content for content in files.values())
    picture = Image.open(io.BytesIO(files["figures/curve.png"]))
    assert picture.getpixel((3, 3)) == (255, 0, 0)


def test_it_is_repeated_elsewhere(
    study: Study, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = capsules.write(study, tmp_path / "blind.zip", anonymous=True)
    shutil.copy(place / "times.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    result = invoked("rerun", path, "-o", "again", "-j", 1)
    assert result.exit_code == 0, result.output
    assert "traces: 2 of 2 runs equal to the bit" in result.output
    assert "does not hold what it held" not in result.output


@pytest.mark.parametrize("what", ["user", "host", "name", "mail", "remote"])
def test_what_cannot_be_removed_is_refused(
    what: str, study: Study, tmp_path: Path
) -> None:
    text = f"as {HIDDEN[what]} has shown"
    study.manifest["question"] = study.manifest["scenario"]["question"] = text
    said = r"line \d+ and \d+ lines? more: must not name its author, got"
    with pytest.raises(StudyError, match=said) as caught:
        capsules.write(study, tmp_path / "blind.zip", anonymous=True)
    assert "or --allow '" in str(caught.value)
    assert not (tmp_path / "blind.zip").exists()
    if what in ("user", "host"):
        allowed = [HIDDEN[what].upper()]
        capsules.write(study, tmp_path / "a.zip", anonymous=True, allowed=allowed)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("x = 1\n# somebody.else@mail.example.com\n", "line 2: .* an e-mail address"),
        ("path = '/home/pat/data'\n", "line 1: .* a user's folder"),
        (r"path = 'C:\\Users\\pat'", "line 1: .* a user's folder"),
    ],
)
def test_code_of_plugins_is_searched(
    text: str, what: str, study: Study, tmp_path: Path
) -> None:
    entry = PackedFile("modules/x.py", text.encode(), "")
    with pytest.raises(StudyError, match=f"modules/x.py, {what}"):
        anonymous.check([entry], {})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("/data/of/a.csv", "a.csv"),
        ("~/a.csv", "a.csv"),
        ("~pat/b/a.csv", "a.csv"),
        (r"C:\of\a.csv", "a.csv"),
        ("of/a.csv", "of/a.csv"),
        ("~ 3 s/commit", "~ 3 s/commit"),
        ("1/(2*M)", "1/(2*M)"),
    ],
)
def test_absolute_paths_become_names(text: str, told: str, study: Study) -> None:
    study.manifest["scenario"]["entry"] = [{"path": text}]
    found = anonymous.nameless(study).manifest["scenario"]
    assert found["entry"] == [{"path": told}]
    assert study.manifest["scenario"]["entry"] == [{"path": text}]


def test_a_name_within_a_word_is_none() -> None:
    def check(text: str) -> None:
        entry = PackedFile("a.txt", text.encode(), "")
        anonymous.check([entry], {"ann": "a name"})

    check("an annual channel")
    for text in ("by Ann.", "ann_notes", "(ANN)", "ann2", "7ann"):
        with pytest.raises(StudyError, match="a name"):
            check(text)


def test_files_of_one_name_are_refused(study: Study, tmp_path: Path) -> None:
    study.manifest["scenario"]["other"] = "/elsewhere/times.csv"
    with pytest.raises(StudyError, match="must have different names, got /"):
        capsules.write(study, tmp_path / "blind.zip", anonymous=True)


@pytest.mark.parametrize("where", ["variants", "groups"])
def test_a_key_of_the_author_s_own_hides_no_name(where: str, study: Study) -> None:
    study.manifest["scenario"][where] = {"jána": {"seed": 1}}
    assert "Jána" in anonymous.identities(study)
    study.manifest["scenario"][where] = {"base": {"jána": 1}}
    assert "Jána" not in anonymous.identities(study)


NAMES = {
    "jqpublic": "the user's name",
    "Jane Quöne": "the user's full name",
    "abe": "a part of the home folder /home/abe",
}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("variant jqpublic2", "the user's name"),
        ("myjqpublicrun", "the user's name"),
        ("jqp\u200bublic", "the user's name"),
        (json.dumps("j\u00adqpublic\ufeff"), "the user's name"),
        ("as quöne has shown", "the user's full name, a part of it"),
        ("as Quone has shown", "the user's full name, a part of it"),
        (json.dumps("Quo\u0308ne"), "the user's full name, a part of it"),
        ("by JANE, 2026", "the user's full name, a part of it"),
        ("abe-me", "a part of the home folder /home/abe"),
        ("3abe7f and janet, as the public has it", None),
    ],
)
def test_names_are_found_in_words_in_parts_and_with_what_no_one_sees(
    text: str, what: str | None
) -> None:
    names = dict(NAMES)
    for name, whose in NAMES.items():
        if whose.startswith(anonymous.PERSON):
            parts = anonymous._parts(name)
            names |= dict.fromkeys(parts, f"{whose}, a part of it")
    entry = PackedFile("a.txt", text.encode(), "")
    if what is None:
        anonymous.check([entry], names)
        return
    with pytest.raises(StudyError, match=f"got .*, {what}; "):
        anonymous.check([entry], names)


def test_a_name_that_the_user_has_given_a_variant_is_searched_all_the_same(
    place: Path, study: Study
) -> None:
    name = "Seed Wexley"
    own: Any = study.manifest["scenario"]
    own["variants"] = {"wexley": {}, "of_wexley": {"clients": {"groups": {"lab": {}}}}}
    _git(place, "config", "user.name", name)
    try:
        found = anonymous.identities(study)
    finally:
        _git(place, "config", "user.name", HIDDEN["name"])
    assert "Wexley" in found
    assert "Seed" not in found  # which every manifest has as a key
