"""What the machine is, and what encryption costs on it."""

import re
import sys

import pytest
from typer.testing import CliRunner

from stalesim.simulator.cli import app
from stalesim.simulator.config.errors import UserError
from stalesim.simulator.engine import compiler


def test_the_machine_is_described(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("STALESIM_CACHE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    said = dict(line.split(maxsplit=1) for line in lines)
    assert {"stalesim", "jax", "tenseal", "processors", "memory"} <= set(said)
    assert ":" in said["devices"]
    assert not said["devices"].startswith("none")
    assert said["cache"].strip() == str(tmp_path)
    assert "double precision compiled rightly" in re.sub(r" +", " ", done.output)


def test_a_compiler_that_is_wrong_is_named(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(compiler, "stores_doubles_rightly", lambda: False)
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 0, done.output
    assert "compiled wrongly: XLA_FLAGS must contain" in done.output


def test_encryption_is_measured() -> None:
    pytest.importorskip("tenseal")
    done = CliRunner().invoke(app, ["doctor", "--encryption"])
    assert done.exit_code == 0, done.output
    assert "\n  encryption:\n    kind: ckks\n    encrypt_s: " in done.output


def test_without_the_library_it_is_said_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "tenseal", None)
    done = CliRunner().invoke(app, ["doctor", "--encryption"])
    assert isinstance(done.exception, UserError)
    assert str(done.exception).endswith('pip install "stalesim[he]"')
