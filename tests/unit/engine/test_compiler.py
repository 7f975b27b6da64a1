"""No run in double precision where its programs are compiled wrongly."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from simulator.config.errors import UserError
from simulator.engine import compiler
from simulator.engine.device import ONE_THREAD, STORES_APART, with_flags
from simulator.scenario.study import merge
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
from simulator.engine import compiler, device
from simulator.config.errors import UserError
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
def test_flags_are_added_to_those_of_the_user(given: str, wanted: list[str]) -> None:
    assert with_flags(given).split() == wanted
    assert with_flags(with_flags(given)) == with_flags(given)


def test_this_process_computes_rightly() -> None:
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
    asked = ("-m", "simulator.cli", "run", str(file), "-o", str(tmp_path / "study"))
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
