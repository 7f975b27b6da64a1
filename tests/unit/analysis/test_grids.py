"""A study as labelled arrays."""

import sys

import numpy as np
import pytest

from stalesim import analysis
from stalesim.simulator.parts.errors import UserError
from tests.unit.analysis.studies import Grid

BS, STEPS, REPLICATES = (1.5, 2.0, 4.0), (0.01, 0.1), 3


def final(b: float, step: float, replicate: int) -> float:
    return 0.5 + 0.02 * b + step + 0.01 * replicate


def whole() -> Grid:
    return Grid(
        [
            ("base", {"b": b, "eta": step}, [final(b, step, r) for r in range(3)])
            for b in BS
            for step in STEPS
        ]
    )


def test_every_key_is_an_axis_and_every_number_in_its_place() -> None:
    found = analysis.to_xarray(whole())
    shape = {"variant": 1, "b": 3, "eta": 2, "replicate": 3, "evaluation": 3}
    assert dict(found.sizes) == shape
    for b in BS:
        for step in STEPS:
            at = found["test_accuracy"].sel(variant="base", b=b, eta=step)
            wanted = [final(b, step, replicate) for replicate in range(REPLICATES)]
            np.testing.assert_allclose(at[:, 2], wanted)
            np.testing.assert_array_equal(at[:, 0], 0)
    np.testing.assert_array_equal(
        found["time"].sel(b=2.0, replicate=1)[0, 0], [0, 1, 2]
    )
    assert found.attrs["name"]


def test_keys_that_are_zipped_are_one_axis() -> None:
    points = ((8, 0.1, "p"), (16, 0.2, "q"), (64, 0.2, "r"))
    study = Grid(
        [
            ("base", {"batch": batch, "eta": step, "z": z, "b": b}, [step + b])
            for batch, step, z in points
            for b in (1, 2)
        ]
    )
    found = analysis.to_xarray(study)
    assert dict(found.sizes) == {
        "variant": 1,
        "batch": 3,
        "b": 2,
        "replicate": 1,
        "evaluation": 3,
    }
    assert not found["test_accuracy"].isnull().any()
    np.testing.assert_array_equal(found["eta"].sel(batch=[64, 8]), [0.2, 0.1])
    assert found["z"].dims == ("batch",)
    last = found["test_accuracy"].sel(variant="base", batch=16, replicate=0, b=2)
    assert last[2] == 2.2


def test_runs_that_there_are_not_are_nan() -> None:
    study = Grid([("a", {"q": 1}, [0.8, 0.9]), ("a", {"q": 2}, [0.7])])
    found = analysis.to_xarray(study)["test_accuracy"].sel(evaluation=2)
    np.testing.assert_array_equal(found[0], [[0.8, 0.9], [0.7, np.nan]])


def test_groups_stand_for_keys_that_not_every_variant_has() -> None:
    study = Grid([("a", {"q": 1}, [0.8]), ("plain", {}, [0.95])])
    found = analysis.to_xarray(study)
    assert dict(found.sizes) == {"group": 2, "replicate": 1, "evaluation": 3}
    last = found["test_accuracy"].sel(replicate=0, evaluation=2)
    assert last.sel(group="plain").item() == 0.95


def test_without_the_library_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(UserError, match=r'pip install "stalesim\[xarray\]"'):
        analysis.to_xarray(whole())
