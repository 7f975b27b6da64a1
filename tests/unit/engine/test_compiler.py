"""Programs that XLA compiles wrongly: what is done about it."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import yaml

from stalesim.simulator.engine import compiler, device
from stalesim.simulator.engine.device import (
    ONE_THREAD,
    SAME_AGAIN,
    STORES_APART,
    SUMS_OF_XLA,
    with_flags,
)
from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.scenario.study import merge
from tests.support import SGD, VAFL

ROOT = Path(__file__).parents[3]
MERGED = STORES_APART.replace("=false", "=true")
WRONG = """
import jax
from tests.verification import miscompiled_stores as stores
with jax.enable_x64(True):
    print(stores.error(stores.stacked, 4, 5, "float64") > 1e-9)
"""
LATE = f"""
{WRONG}
from stalesim.simulator.engine import compiler, device
from stalesim.simulator.parts.errors import UserError
device.before_import()
try:
    print(compiler.check("float64"))
except UserError as error:
    print(error)
"""


def python(*arguments: str, flags: str = "") -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("", [ONE_THREAD, STORES_APART]),
        (f"--xla_foo=1 {ONE_THREAD}", ["--xla_foo=1", ONE_THREAD, STORES_APART]),
        (f"{STORES_APART} {ONE_THREAD}", [STORES_APART, ONE_THREAD]),
        # What the user has set stays, and is refused later if it computes wrongly.
        (MERGED, [MERGED, ONE_THREAD]),
        (
            "--xla_backend_extra_options=-rng-seed=1",
            ["--xla_backend_extra_options=-rng-seed=1", ONE_THREAD, STORES_APART],
        ),
    ],
)
def test_flags_are_added_to_those_of_the_user(
    given: str, wanted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "_version", lambda: (0, 10, 1))
    monkeypatch.setattr(device, "GPUS", ())
    assert with_flags(given).split() == wanted
    assert with_flags(with_flags(given)) == with_flags(given)


def test_a_gpu_computes_the_same_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "GPUS", (tmp_path / "none",))
    assert SAME_AGAIN not in with_flags("").split()
    monkeypatch.setattr(device, "GPUS", (tmp_path / "none", tmp_path))
    assert SAME_AGAIN in with_flags("").split()
    assert "autotune" not in with_flags("")  # convolutions would be slow
    theirs = "--xla_gpu_deterministic_ops=false"
    assert SAME_AGAIN not in with_flags(theirs).split()
    # This version's program ends at a flag that it does not know.
    known = {**os.environ, "XLA_FLAGS": with_flags("")}
    command = [sys.executable, "-c", "import jax; print(jax.devices())"]
    assert subprocess.run(command, env=known, check=True, capture_output=True).stdout


def test_processes_share_the_memory_of_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default the first one would take three quarters of it, and others fail."""
    name = "XLA_PYTHON_CLIENT_PREALLOCATE"
    for flag in ("XLA_FLAGS", device.NUM_THREADS, name):
        monkeypatch.setenv(flag, "")  # what follows is undone
    monkeypatch.delenv(name)
    monkeypatch.setattr(device, "GPUS", (tmp_path / "none",))
    device.before_import()
    assert name not in os.environ
    monkeypatch.setattr(device, "GPUS", (tmp_path,))
    device.before_import()
    assert os.environ[name] == "false"
    monkeypatch.setenv(name, "true")  # the user's
    device.before_import()
    assert os.environ[name] == "true"


def test_the_flag_of_sums_is_for_versions_that_know_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for version, needs in (((0, 8, 0), False), ((0, 10, 2), True), ((0, 11), True)):
        monkeypatch.setattr(device, "_version", lambda found=version: found)
        assert (SUMS_OF_XLA in with_flags("").split()) == needs
    theirs = "--xla_cpu_experimental_ynn_fusion_type=dot"
    assert with_flags(theirs).split().count(SUMS_OF_XLA) == 0


SUMS = """
import warnings
{first}
import jax
jax.numpy.ones(3).sum()
from stalesim.simulator.engine import compiler
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    print(compiler.sums_rightly())
print(len(told), *(warning.message for warning in told))
"""


def test_sums_are_right_where_this_program_is_imported_first() -> None:
    done = python("-c", SUMS.format(first="import stalesim"))
    assert done.stdout.splitlines() == ["True", "0"], done.stderr


def test_sums_that_may_be_wrong_are_warned_of() -> None:
    right, told = python("-c", SUMS.format(first="")).stdout.splitlines()
    if right == "False":
        assert told.startswith("1 jaxlib")
        assert told.endswith("or import stalesim before JAX computes")
    else:
        assert told == "0"


@pytest.mark.parametrize(("models", "rows"), [(1, 60_000), (2, 20_000), (5, 10_000)])
def test_sums_of_products_squares_and_means_are_those_of_numpy(
    models: int, rows: int
) -> None:
    rng = np.random.default_rng(rows)
    one, many = rng.normal(size=(10, rows)), rng.normal(size=(models, 10, rows))
    single = jnp.asarray(one, "float32"), jnp.asarray(many, "float32")
    wanted = {
        "products": (one * many).sum(axis=-2),
        "squares": (many**2).sum(axis=-1),
        "all": (many**2).sum(axis=(1, 2)),
        "differences": ((many - one) ** 2).sum(axis=-1),
        "mean": (one * many).mean(axis=(1, 2)),
    }
    forms = {
        "products": lambda a, b: (a * b).sum(axis=-2),
        "squares": lambda a, b: (b**2).sum(axis=-1),
        "all": lambda a, b: (b**2).sum(),
        "differences": lambda a, b: ((b - a) ** 2).sum(axis=-1),
        "mean": lambda a, b: (a * b).mean(),
    }
    for name, form in forms.items():
        found = jax.jit(jax.vmap(form, (None, 0)))(*single)
        np.testing.assert_allclose(
            found, wanted[name], rtol=2e-3, atol=2e-3, err_msg=name
        )


def test_this_process_computes_rightly() -> None:
    assert compiler.sums_rightly()
    assert compiler.stores_doubles_rightly()
    compiler.check("float64")


def test_flags_that_come_too_late_are_noticed() -> None:
    done = python("-c", LATE)
    wrong, said = done.stdout.splitlines()
    if wrong == "True":
        assert f"must contain {STORES_APART} before" in said
        assert "got it too late: jaxlib" in said
    else:
        assert said == "None"


def test_a_study_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "double.yaml"
    double = {"engine": {"precision": "float64"}, "stop": {"commits": 5}}
    file.write_text(yaml.safe_dump(merge(merge(VAFL, SGD), double)))
    asked = ("-m", "stalesim", "run", str(file), "-o", str(tmp_path / "study"))
    done = python(*asked, flags=MERGED)
    if python("-c", WRONG, flags=MERGED).stdout.strip() == "True":
        assert done.returncode == 2
        assert "must contain --xla_backend_extra_options" in done.stderr
        assert "Traceback" not in done.stderr
        assert not (tmp_path / "study").exists()
    else:
        assert done.returncode == 0


def test_single_precision_needs_no_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "stores_doubles_rightly", lambda: False)
    compiler.check("float32")
    with pytest.raises(UserError, match=r"precision to float32$"):
        compiler.check("float64")
