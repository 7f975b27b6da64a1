"""The wheel, made of the source archive alone: one name, and scenarios in it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("simulator", "analysis", "scenarios")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built of an archive that was built of a copy.

    What the archive lacks, the wheel lacks. Building leaves files in its folder.
    """
    folder = tmp_path_factory.mktemp("wheel")
    for name in FOLDERS:
        unneeded = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / "source" / name, ignore=unneeded)
    for path in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "CITATION.cff"):
        shutil.copy(ROOT / path, folder / "source")
    archive = "from setuptools import build_meta; build_meta.build_sdist('..')"
    command = [sys.executable, "-c", archive]
    subprocess.run(command, cwd=folder / "source", check=True, capture_output=True)
    shutil.rmtree(folder / "source")
    (sources,) = folder.glob("stalesim-*.tar.gz")
    options = ["--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir"]
    command = [sys.executable, "-m", "pip", "wheel", *options, folder]
    subprocess.run([*command, sources], check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


@pytest.mark.long
def test_everything_is_installed_under_one_name(wheel: Path) -> None:
    names = {Path(name) for name in ZipFile(wheel).namelist()}
    assert {name.parts[0].split("-")[0] for name in names} == {"stalesim"}
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            inner = path.relative_to(ROOT)
            if path.is_file() and not {"__pycache__", "front"} & {*inner.parts}:
                assert Path("stalesim", inner) in names, inner
    assert {Path("stalesim/__init__.py"), Path("stalesim/__main__.py")} <= names


@pytest.mark.long
def test_it_runs_where_other_files_have_its_folders_names(
    wheel: Path, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    install = ["install", "--no-deps", "--quiet", "--target", str(site), str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    here = tmp_path / "mine"
    (here / "tests").mkdir(parents=True)
    for name in ("analysis.py", "simulator.py", "tests/__init__.py"):
        (here / name).write_text("raise RuntimeError('the wrong module')\n")
    environment = {**os.environ, "PYTHONPATH": str(site)}

    def python(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            cwd=here,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    shorter = ("-s", "replicates=1", "-s", "stop.time=20", "--no-plots", "-o", "study")
    said = python("-m", "stalesim", "run", "quickstart", *shorter)
    assert "Study: study" in said
    told = "import stalesim; print(stalesim.__file__, stalesim.load('study').complete)"
    assert python("-c", told).split() == [str(site / "stalesim/__init__.py"), "True"]
