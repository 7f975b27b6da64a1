"""Public names of packages are listed once, and imported when they are used."""

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

PACKAGES = (
    "stalesim.analysis",
    "stalesim.analysis.figures",
    "stalesim.simulator",
    "stalesim.simulator.scenario",
)
LATE = {
    "stalesim.analysis": ("jax", "pandas", "matplotlib"),
    "stalesim.analysis.figures": ("jax", "pandas", "matplotlib"),
    "stalesim.simulator": ("jax", "pandas", "pydantic"),
    "stalesim.simulator.scenario": ("jax", "pandas", "pydantic"),
    "stalesim": ("jax", "pandas", "matplotlib", "pydantic"),
}


ROOT = Path(__file__).parents[2]


def loaded(code: str, folder: Path = ROOT) -> tuple[list[str], set[str]]:
    """Executes code in a process of its own; what it prints, and imports."""
    code += "; import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    *lines, modules = done.stdout.splitlines()
    return lines, {*modules.split()}


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_that_type_checkers_see_can_be_imported(name: str) -> None:
    package = import_module(name)
    listed = [
        alias.name
        for node in ast.walk(ast.parse(Path(str(package.__file__)).read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
        and node.module not in ("typing", "simulator.parts.lazy", "parts.lazy", "lazy")
        and node.module != "folders"
        for alias in node.names
        if alias.name != "*"
    ]
    if name == "stalesim.analysis":
        listed += import_module("stalesim.analysis.figures").__all__
        listed = [*dict.fromkeys(listed)]
    assert len(listed) > 5
    assert package.__all__ == dir(package) == sorted(listed)
    for one in listed:
        assert getattr(package, one) is not None
    with pytest.raises(AttributeError, match=f"'{name}' has no attribute 'nothing'"):
        _ = package.nothing


def test_one_import_has_the_names_of_both_packages() -> None:
    import stalesim
    from stalesim import analysis, simulator

    both = {*analysis.__all__, *simulator.__all__}
    assert {*stalesim.__all__} == both | {"__version__"}
    assert stalesim.__version__ == version("stalesim")
    assert dir(stalesim) == stalesim.__all__
    assert stalesim.simulate is simulator.simulate
    assert stalesim.tidy is analysis.tidy
    with pytest.raises(AttributeError, match="'stalesim' has no attribute 'nothing'"):
        _ = stalesim.nothing


@pytest.mark.parametrize("name", [*PACKAGES, "stalesim"])
def test_a_package_alone_imports_nothing_large(name: str) -> None:
    assert not {*LATE[name]} & loaded(f"import {name}")[1]


LARGE = {
    *("jax", "matplotlib", "pandas", "pooch", "pyarrow", "requests", "scipy"),
    "sklearn",
}
READ = "from stalesim.simulator.scenario import read; read('scenarios/quickstart.yaml')"
COMMAND = (
    "from stalesim.simulator.cli.commands import app; "
    "app({arguments}, standalone_mode=0)"
)


def test_what_is_quick_imports_nothing_large() -> None:
    calls = ["--help"], ["run", "--help"], ["list"], ["data", "list"]
    code = "; ".join((READ, *(COMMAND.format(arguments=words) for words in calls)))
    assert not LARGE & loaded(code)[1]


def test_a_closed_form_imports_of_scipy_what_it_needs() -> None:
    """All of `scipy.stats` and `scipy.integrate` takes half a second."""
    code = "from stalesim.analysis import claims, escapes, legend, timelines, worlds; "
    late = {"scipy.integrate", "scipy.optimize", "scipy.stats"}
    assert not late & loaded(f"{code}claims.undecidable")[1]


def test_help_needs_neither_numpy_nor_pydantic() -> None:
    modules = loaded(COMMAND.format(arguments=["--help"]))[1]
    assert not {"numpy", "pydantic"} & modules


def test_tables_and_claims_are_made_without_matplotlib() -> None:
    """It takes half a second, also of runs that draw no figures."""
    code = "from stalesim.analysis import claims, legend, tables; tables.results"
    assert "matplotlib" not in loaded(f"{code}; claims.evaluate, legend.legend")[1]


def test_a_plan_is_shown_without_pandas() -> None:
    code = COMMAND.format(arguments=["run", "quickstart", "--dry-run"])
    late = {"matplotlib", "pandas", "scipy.stats", "sklearn"}
    assert not late & loaded(code)[1]


def test_runs_are_planned_without_their_programs() -> None:
    """Equinox and all kernels take half a second, which processes of runs take."""
    code = READ.replace("read(", "found = read(")
    code += "; from stalesim.simulator.studies import planned; planned(found)"
    assert not {"equinox", "stalesim.simulator.engine.execute"} & loaded(code)[1]


WORLD = """
name: world
seed: 1
clients: {number: 3, compute: {law: expon}}
protocol: {kind: asynchronous}
stop: {commits: 20}
"""


@pytest.mark.parametrize(
    ("path", "more", "late"),
    [
        ("world.yaml", ["--no-plots"], {"matplotlib", "scipy.special", "scipy.linalg"}),
        ("world.yaml", [], {"scipy.special", "scipy.linalg"}),
        ("quickstart", ["--set", "stop.time=5"], {"scipy.linalg"}),
    ],
    ids=("tables of exponential laws", "exponential laws", "log-normal laws"),
)
def test_a_world_is_played_without_what_it_does_not_need(
    path: str, more: list[str], late: set[str], tmp_path: Path
) -> None:
    """All of `scipy.stats`, for the mean of a law, took a sixth of the time."""
    (tmp_path / "world.yaml").write_text(WORLD)
    code = COMMAND.format(arguments=["timeline", path, "-o", "out", *more])
    late |= {"jax", "scipy.integrate", "scipy.optimize", "scipy.stats", "sklearn"}
    assert not late & loaded(code, tmp_path)[1]


def test_what_lists_names_imports_no_part() -> None:
    """To import all parts takes most of a second."""
    calls = {"t_synchronous": ["list"], "quickstart_vafl": ["list", "scenarios"]}
    calls["stalesim "] = ["--version"]
    commands = (COMMAND.format(arguments=words) for words in calls.values())
    listed, modules = loaded("; ".join(commands))
    assert all(any(word in line for line in listed) for word in calls)
    assert (
        not {"numpy", "simpy", "stalesim.simulator.world.laws.distributions"} & modules
    )


def test_data_are_listed_without_the_parts_of_other_kinds() -> None:
    """Before, all parts were imported to compare their names with plug-ins' names."""
    _, modules = loaded(COMMAND.format(arguments=["data", "list"]))
    assert "stalesim.simulator.catalogue.data.mnist" in modules
    others = {
        "stalesim.simulator.world.laws",
        "stalesim.simulator.catalogue.protocols",
        "simpy",
    }
    assert not others & modules


def test_what_a_name_is() -> None:
    from stalesim.analysis import convergence, style
    from stalesim.analysis.figures import learning_curves
    from stalesim.analysis.figures import style as there

    # It takes a folder as well.
    assert inspect.unwrap(convergence) is learning_curves.convergence
    assert style is there
