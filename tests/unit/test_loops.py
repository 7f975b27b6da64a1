"""Which tests run: turns of the dear ones, the tests near a change."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.conftest import (
    COSTLY,
    EVIDENCE,
    SHARES,
    keep_programs,
    of_other_turns,
    pytest_cmdline_main,
    pytest_ignore_collect,
    share,
)

ROOT = Path(__file__).parents[2]
PLAIN = {key: value for key, value in os.environ.items() if key != "PYTEST_ADDOPTS"}
"""The environment without options that are added to every call of pytest."""
LONG = [f"tests/test_a.py::test_long[{n}]" for n in range(40)]
COSTLY_ONES = [f"tests/golden/test_b.py::test_some[{n}]" for n in range(40)]
TESTS = """
import pytest

@pytest.mark.long
@pytest.mark.parametrize("n", range(40))
def test_long(n): ...

def test_short(): ...
"""
COSTLY_TESTS = """
import pytest

@pytest.mark.parametrize("n", range(40))
def test_some(n): ...
"""


def script(name: str) -> ModuleType:
    """Returns a script of .ci, which has no ending."""
    loader = SourceFileLoader(name, str(ROOT / ".ci" / name))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def near() -> ModuleType:
    return script("near")


@pytest.mark.parametrize("shares", [1, 40])
@pytest.mark.parametrize("number", [0, 7, 100])
@pytest.mark.parametrize("first", [0, 11])
def test_shares_of_all_turns_are_all_tests_once(
    number: int, first: int, shares: int
) -> None:
    all_names = [f"test_{n}" for n in range(number)]
    turns = [share(reversed(all_names), first + n, shares) for n in range(shares)]
    assert sorted(name for names in turns for name in names) == sorted(all_names)
    sizes = [*map(len, turns)]
    assert max(sizes) - min(sizes) <= 1


def item(path: str, name: str, *kinds: str) -> Any:
    marker = {kind: kind for kind in kinds}.get
    nodeid = f"{path}::{name}"
    return SimpleNamespace(path=Path(path), nodeid=nodeid, get_closest_marker=marker)


def test_every_test_is_run_within_the_turns_of_its_kind() -> None:
    kinds = {"a": ("long",), "b": ("costly",), "c": ("costly", "long"), "d": ()}
    items = [item(path, f"test_{n}", *kinds[path]) for path in kinds for n in range(9)]
    names = {one.nodeid for one in items}
    for path, turns in (
        ("a", SHARES["long"]),
        ("b", SHARES["costly"]),
        ("c", SHARES["long"]),
        ("d", 1),
    ):
        for first in (0, 7):
            run: list[str] = []
            for turn in range(first, first + turns):
                run += names - {*of_other_turns(items, turn)}
            own = sorted(name for name in run if name.startswith(path))
            assert own == [f"{path}::test_{n}" for n in range(9)]


def test_files_of_costly_tests_exist() -> None:
    for pattern in COSTLY:
        assert any((ROOT / "tests").glob(pattern)), pattern


def test_processes_share_programs_in_pytests_cache_or_a_folder_that_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config: Any = SimpleNamespace(cache=SimpleNamespace(mkdir=tmp_path.joinpath))
    variable = "JAX_COMPILATION_CACHE_DIR"
    monkeypatch.setenv(variable, "own")
    keep_programs(config)
    assert os.environ[variable] == "own"
    monkeypatch.delenv(variable)
    keep_programs(config)
    assert os.environ[variable] == str(tmp_path / "compiled")


@pytest.mark.parametrize(
    ("named", "said", "dist", "taken"),
    [
        ("tests", None, "no", ("auto", "worksteal")),  # files whole, as far as can be
        ("tests", None, "loadfile", ("auto", "loadfile")),
        ("tests", 3, "no", (3, "no")),
        ("tests/conftest.py::test_x", None, "no", (None, "no")),
    ],
)
def test_folders_take_all_cores(
    named: str, said: int | None, dist: str, taken: tuple[object, str]
) -> None:
    option = SimpleNamespace(numprocesses=said, dist=dist)
    config: Any = SimpleNamespace(option=option, args=[str(ROOT / named)])
    pytest_cmdline_main(config)
    assert (option.numprocesses, option.dist) == taken


def collected(root: Path, *arguments: str) -> list[str]:
    """Returns the tests that pytest collects in a repository of one file."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *arguments]
    done = subprocess.run(
        command, cwd=root, env=PLAIN, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return re.findall(r"^tests/.*::.*$", done.stdout, re.M)


SHORT = "tests/test_a.py::test_short"


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (("tests",), [*(COSTLY_ONES[n] for n in (28, 29)), LONG[31], SHORT]),
        (("tests", "--slow"), [*COSTLY_ONES, *LONG, SHORT]),
        (("tests/test_a.py",), [*LONG, SHORT]),
    ],
)
def test_of_folders_a_share_is_run_and_of_files_everything(
    arguments: tuple[str, ...], kept: list[str], tmp_path: Path
) -> None:
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "turn").write_text("7\n")
    (tmp_path / "tests" / "golden").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "tests")
    (tmp_path / "tests" / "test_a.py").write_text(TESTS)
    (tmp_path / "tests" / "golden" / "test_b.py").write_text(COSTLY_TESTS)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    assert collected(tmp_path, *arguments) == kept


@pytest.mark.parametrize(
    ("named", "slow", "left_out"),
    [
        ("tests", False, True),
        ("tests", True, False),
        ("tests/evidence", False, False),
        ("tests/evidence/test_rows.py::test_some", False, False),
    ],
)
def test_evidence_is_left_to_slow_and_to_whoever_names_it(
    named: str, *, slow: bool, left_out: bool
) -> None:
    config: Any = SimpleNamespace(getoption=lambda _: slow, args=[str(ROOT / named)])
    assert bool(pytest_ignore_collect(EVIDENCE, config)) is left_out
    assert pytest_ignore_collect(ROOT / "tests" / "unit", config) is None


def test_a_page_of_evidence_is_near_its_tests(near: ModuleType) -> None:
    own = ROOT / "tests/evidence/test_rows.py"
    for changed in ("evidence/rows.csv", "evidence/rows.py"):
        assert own in near.near({ROOT / changed})


@pytest.mark.parametrize(
    ("changed", "touched", "others"),
    [
        # A part of the catalogue, and what names it.
        (
            "simulator/catalogue/protocols/gossip/gossip.py",
            "protocols/test_gossip",
            "privacy/test_gdp",
        ),
        (
            "simulator/catalogue/algorithms/vafl/kernel.py",
            "engine/test_modes",
            "privacy/test_gdp",
        ),
        # A process of its own.
        ("simulator/cli/commands.py", "test_cli", "protocols/test_gossip"),
        ("tests/support.py", "protocols/test_order", "test_cli"),
        ("tests/unit/test_cli.py", "test_cli", "world/test_laws"),
        # No Python, but named.
        ("docs/families/words.md", "docs/test_words_page", "test_cli"),
        # A name that is imported on demand.
        (
            "simulator/studies/planning.py",
            "engine/test_precision",
            "test_commit",
        ),
    ],
)
def test_tests_near_a_change(
    changed: str, touched: str, others: str, near: ModuleType
) -> None:
    found = near.near({ROOT / changed})
    assert ROOT / f"tests/unit/{touched}.py" in found
    assert ROOT / f"tests/unit/{others}.py" not in found


@pytest.mark.parametrize(
    "file",
    [
        "catalogue/algorithms/federated/weights",
        "catalogue/algorithms/tables",
        "catalogue/laws/markov",
        "problem/metrics/fairness",
        "catalogue/protocols/buffered",
    ],
)
def test_few_tests_are_near_a_part(file: str, near: ModuleType) -> None:
    assert 0 < len(near.near({ROOT / f"simulator/{file}.py"})) < 30


@pytest.mark.parametrize(
    ("row", "remedies"),
    [
        (("laws", "markov", "catalogue.laws.markov:Markov", "One."), []),
        (
            ("laws", "expon", "world.laws.distributions:Constant", ""),
            ["description", "public name", "scipy.stats"],
        ),
        (
            (
                "algorithms",
                "sgd_of_" + "nobody",
                "catalogue.algorithms.federated.part:Sgd",
                "One.",
            ),
            ["public name", "pins write", "test that names it"],
        ),
        (("metrics", "lost", "problem.metrics.fairness:lost", "One."), ["class"]),
    ],
)
def test_what_a_new_part_lacks_is_said(
    row: tuple[str, str, str, str], remedies: list[str], near: ModuleType
) -> None:
    kind, name, place, meaning = row
    place = f"stalesim.simulator.{place}"
    found = [*script("part").lacks(kind, name, place, meaning, near)]
    assert len(found) == len(remedies), found
    assert all(part in line for part, line in zip(remedies, found, strict=True))


def test_a_conftest_is_near_all_tests_of_its_folder(near: ModuleType) -> None:
    data = ROOT / "tests/unit/data"
    found = near.near({data / "conftest.py"})
    assert found == sorted(data.glob("test_*.py"))


def test_shapes_of_different_rank_are_not_stretched() -> None:
    import jax.numpy as jnp

    with pytest.raises(ValueError, match="rank_promotion"):
        jnp.ones((2, 3)) + jnp.ones(3)


def test_a_wrong_shape_is_found_out(tmp_path: Path) -> None:
    """As `.ci/shapes` checks it, where the arrays are in a list, too."""
    (tmp_path / "measured.py").write_text(
        "import numpy as np\n"
        "from jaxtyping import Float\n\n"
        'Vector = Float[np.ndarray, " n"]\n\n'
        "def added(a: Vector, b: Vector) -> float: return 1\n"
        "def first(of: list[Vector]) -> Vector: return of[0]\n"
    )
    (tmp_path / "test_some.py").write_text(
        "import numpy as np\n"
        "import pytest\n"
        "from jaxtyping import TypeCheckError\n"
        "import measured\n\n"
        "def test_some():\n"
        "    assert measured.added(np.ones(2), np.ones(2)) == 1\n"
        "    measured.first([np.ones(2)])\n"
        "    with pytest.raises(TypeCheckError):\n"
        "        measured.added(np.ones(2), np.ones(3))\n"
        "    with pytest.raises(TypeCheckError):\n"
        "        measured.first([np.ones((2, 2))])\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "test_some.py"]
    command += ["--jaxtyping-packages=measured,tests.checked"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=PLAIN | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
