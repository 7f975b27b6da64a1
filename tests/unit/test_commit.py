"""Which state of the program made a study."""

import ast
import os
import subprocess
from pathlib import Path

import pytest

from stalesim.simulator.files.study import manifest
from stalesim.simulator.files.study.manifest import of_program
from stalesim.simulator.parts import attached

WHO = ("-c", "user.name=a", "-c", "user.email=a@b")


def git(folder: Path, *words: str) -> str:
    own = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    call = ["git", "-C", str(folder), *WHO, *words]
    done = subprocess.run(call, check=True, capture_output=True, text=True, env=own)
    return done.stdout.strip()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package in a folder of its own, from which this program seems to run."""
    folder = tmp_path / "copy" / "simulator"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    monkeypatch.setattr(manifest, "PACKAGE", folder)
    return folder


def committed(repository: Path) -> str:
    git(repository, "init", "-q")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "all")
    return git(repository, "rev-parse", "HEAD")


def test_it_is_the_packages_commit_wherever_one_works(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = committed(package.parent)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.txt").write_text("mine")
    other = committed(elsewhere)
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("GIT_DIR", str(elsewhere / ".git"))  # as a hook has it
    assert of_program() == (head, False)
    assert head != other


def test_local_changes_of_the_program_are_seen(package: Path) -> None:
    (package.parent / "notes.txt").write_text("")
    head = committed(package.parent)
    (package.parent / "notes.txt").write_text("changed")
    assert of_program() == (head, False), "they are no part of the program"
    (package / "new.py").write_text("")
    assert of_program() == (head, True)
    (package / "new.py").unlink()
    (package / "__init__.py").write_text("changed = 1")
    assert of_program() == (head, True)
    git(package.parent, "checkout", "-q", "simulator")
    assert of_program() == (head, False)


def test_an_environment_in_somebody_elses_repository_has_none(package: Path) -> None:
    (package.parent / ".gitignore").write_text("simulator\n")
    committed(package.parent)
    assert of_program() == (None, None)


def test_a_wheel_has_none(package: Path) -> None:
    assert of_program() == (None, None)


def test_without_git_it_is_not_known(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed(package.parent)
    monkeypatch.setattr(manifest.subprocess, "run", _no_git)
    assert of_program() == (None, None)


def _no_git(*args: object, **options: object) -> None:
    raise FileNotFoundError("git")


def digest() -> str:
    """Returns the digest of the code in another process, as it were."""
    manifest.code.cache_clear()
    return manifest.code(manifest.PACKAGE)


def test_the_code_is_known_by_the_names_and_contents_of_its_files(
    package: Path,
) -> None:
    known = {digest()}
    (package / "part").mkdir()
    (package / "part" / "a.py").write_text("a = 1")
    known.add(digest())
    (package / "part" / "a.py").rename(package / "part" / "b.py")
    known.add(digest())
    (package / "part" / "b.py").write_text("a = 2")
    known.add(digest())
    assert len(known) == 4
    (package / "notes.txt").write_text("")
    assert digest() in known


@pytest.mark.parametrize("place", ["cli/run.py", "extras/testbed/mqtt.py"])
def test_what_no_run_can_import_does_not_count(package: Path, place: str) -> None:
    before = digest()
    (package / place).parent.mkdir(parents=True)
    (package / place).write_text("# a comment")
    assert digest() == before


@pytest.mark.parametrize(
    "place",
    ["laws/base.py", "engine/host.py", "front/torch.py", "text.bz2", "a.gz"],
)
def test_what_a_run_can_reach_counts(package: Path, place: str) -> None:
    before = digest()
    (package / place).parent.mkdir(exist_ok=True)
    (package / place).write_text("# a comment")
    assert digest() != before


def imported(path: Path) -> set[str]:
    """Returns the modules that a file of this program names: imports, and texts."""
    above = manifest.__name__.partition(".")[0]
    package = (above, *path.relative_to(HERE.parent).with_suffix("").parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(package[: -node.level]) if node.level else ""
            module = ".".join(filter(None, (above, node.module)))
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value.partition(":")[0])
    return found


HERE = manifest.PACKAGE


def test_no_run_can_import_what_does_not_count() -> None:
    apart = tuple(f"stalesim.simulator.{name}" for name in manifest.APART)
    ways = {
        (path.relative_to(HERE).as_posix(), name)
        for path in HERE.rglob("*.py")
        if path.relative_to(HERE).parts[0] not in manifest.APART
        for name in imported(path)
        if f"{name}.".startswith(tuple(f"{each}." for each in apart))
    }
    # `python -m stalesim` begins the command line, and nothing imports a `__main__`.
    # Extras are found by their folders alone, and count where a study uses them.
    found = ("parts/attached.py", attached.PACKAGE)
    assert {path for path, _ in ways - {found}} <= {"front/__main__.py"}
