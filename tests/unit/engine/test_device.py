"""Compiled programs are forgotten before there are more than XLA survives."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from stalesim.simulator.engine import device
from tests.runs import execute, prepared


def limited(monkeypatch: pytest.MonkeyPatch, folder: Path, most: int) -> None:
    limit = folder / "max_map_count"
    limit.write_text(f"{most}\n")
    monkeypatch.setattr(device, "MOST_MAPPINGS", limit)


@pytest.mark.skipif(not device.mappings(), reason="only Linux lists its mappings")
def test_programs_are_forgotten_where_they_take_half_of_the_mappings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = jax.jit(lambda x: jnp.sin(x) + 1)
    compiled(jnp.ones(3))
    here = device.mappings()
    limited(monkeypatch, tmp_path, 20 * here)
    assert not device.release_programs()
    assert compiled._cache_size() == 1
    limited(monkeypatch, tmp_path, here)
    assert device.release_programs()
    assert compiled._cache_size() == 0


@pytest.mark.parametrize("named", [False, True])
def test_a_folder_that_is_named_to_jax_keeps_the_programs(
    named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = jax.config.jax_compilation_cache_dir
    variable = "JAX_COMPILATION_CACHE_DIR"
    monkeypatch.setenv(variable, "own" if named else "")
    monkeypatch.setenv("STALESIM_CACHE", str(tmp_path))
    kept: dict[str, object] = {}
    monkeypatch.setattr(jax.config, "update", kept.__setitem__)
    device.use_cache()
    assert kept.get("jax_compilation_cache_dir") == (
        None if named else str(tmp_path / "compiled")
    )
    assert jax.config.jax_compilation_cache_dir == before


def test_a_run_is_the_same_after_its_programs_were_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = execute([prepared()])
    limited(monkeypatch, tmp_path, 2)
    device.release_programs()
    again, _ = execute([prepared()])
    assert list(again.column("commits", "loss")) == list(
        first.column("commits", "loss")
    )


def test_a_system_that_does_not_say_keeps_its_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "MAPPINGS", tmp_path / "none")
    assert device.mappings() == 0
    limited(monkeypatch, tmp_path, 100)
    assert not device.release_programs()
    monkeypatch.setattr(device, "MOST_MAPPINGS", tmp_path / "none")
    assert not device.release_programs()


@pytest.mark.parametrize(
    ("chosen", "here", "found"),
    [
        (None, {"platform": "cpu"}, "float32"),
        (None, {"platform": "gpu", "compute_capability": "7.5"}, "float32"),
        (None, {"platform": "gpu", "compute_capability": "9.0"}, "tensorfloat32"),
        ("default", {"platform": "gpu", "compute_capability": "12.0"}, "tensorfloat32"),
        (None, {"platform": "gpu", "compute_capability": "gfx90a"}, "float32"),
        (None, {"platform": "tpu"}, "bfloat16"),
        ("highest", {"platform": "tpu"}, "highest"),
    ],
)
def test_the_precision_of_products_is_that_of_the_setting_and_device(
    chosen: str | None, here: dict[str, str], found: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr(jax, "devices", lambda: [SimpleNamespace(**here)])
    with jax.default_matmul_precision(chosen):
        assert device.products() == found
