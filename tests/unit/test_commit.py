"""Which state of the program made a study."""

import os
import subprocess
from pathlib import Path

import pytest

from stalesim.simulator.trace import commit
from stalesim.simulator.trace.commit import of_program

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
    monkeypatch.setattr(commit, "PACKAGE", folder)
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
    monkeypatch.setattr(commit.subprocess, "run", _no_git)
    assert of_program() == (None, None)


def _no_git(*args: object, **options: object) -> None:
    raise FileNotFoundError("git")


def digest() -> str:
    """Returns the digest of the code in another process, as it were."""
    commit._code.cache_clear()
    return commit.code()


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


def test_no_number_passes_through_the_command_line(package: Path) -> None:
    before = digest()
    (package / "cli").mkdir()
    (package / "cli" / "run.py").write_text("a = 1")
    assert digest() == before
    (package / "text.bz2").write_bytes(b"data")
    assert digest() != before, "data that comes with the package"
