import numpy as np
import pytest

from evidence.generators import vafl


def test_gdp_table() -> None:
    frame = vafl.gdp_table()
    assert frame.shape == (24, 7)
    rows = frame.set_index(["mu", "releases", "sampling_ratio"])
    row = rows.loc[(1.0, 10_000, 0.01)]
    assert row["epsilon"] == pytest.approx(4.38, abs=5e-3)
    assert row["gdp_linear"] == pytest.approx(1.0)
    assert row["gdp_poisson"] == pytest.approx(1.201, abs=5e-4)
    assert row["gdp_uniform"] == pytest.approx(1.4103, abs=5e-5)
    full = frame[frame["sampling_ratio"] == 1]
    expected = np.sqrt(full["releases"]) / full["mu"]
    for form in vafl.FORMS:
        np.testing.assert_allclose(full[form], expected)


def test_smoothing_table() -> None:
    frame = vafl.smoothing_table(cs=(0.1, 1.0), hidden_cs=(0.1, 1.0), num_draws=2_000)
    assert len(frame) == 4
    for part in ("total", "bias"):
        assert (frame[f"measured_{part}"] < frame[f"tight_{part}"]).all()
        assert (frame[f"tight_{part}"] < frame[f"printed_{part}"]).all()
    for column in ("measured_bias", "tight_bias", "printed_bias"):
        grid = frame.pivot_table(index="c", columns="hidden_c", values=column)
        assert (np.diff(grid, axis=0) < 0).all()
        assert (np.diff(grid, axis=1) < 0).all()
    again = vafl.smoothing_table(cs=(0.1, 1.0), hidden_cs=(0.1, 1.0), num_draws=2_000)
    assert frame.equals(again)


def test_throughput_table() -> None:
    frame = vafl.throughput_table()
    assert frame["num_clients"].tolist() == [3, 7, 8, 4, 4]
    expected = [1.087, 1.109, 1.110, 5.727, 1.236]  # exact values, rounded
    np.testing.assert_allclose(frame["expected_maximum"], expected, atol=5e-4)
    np.testing.assert_allclose(
        frame["ratio"], [1.99, 2.87, 3.02, 2.98, 3.09], atol=6e-3
    )
