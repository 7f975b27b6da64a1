"""What the machine is."""

import re

from typer.testing import CliRunner

from stalesim.simulator.cli import app
from stalesim.simulator.engine import compiler


def test_the_machine_is_described(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("STALESIM_CACHE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    said = dict(line.split(maxsplit=1) for line in lines)
    assert {"stalesim", "jax", "processors", "memory"} <= set(said)
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


def test_compiled_programs_are_removed(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("STALESIM_CACHE", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "compiled").mkdir()
    (tmp_path / "compiled" / "program").write_bytes(bytes(2**21))
    done = CliRunner().invoke(app, ["doctor", "--clear-cache"])
    assert done.output.startswith("Removed 2.0 MiB of compiled programs")
    assert not any((tmp_path / "compiled").iterdir())
