"""Tables of MAPA: their numbers are the specification's."""

import pytest

from generators import mapa


def test_tables_of_the_paper() -> None:
    steps = mapa.step_table().set_index(["algorithm", "t"])["step_size"]
    assert steps.shape == (12,)
    assert steps["CSGD", 1] == pytest.approx(1 / 22.247449)
    assert steps["MAPA", 1] == pytest.approx(0.00112499, rel=1e-5)
    assert steps["MAPA", 10_000] == pytest.approx(0.0001269, rel=1e-3)
    staged = mapa.stage_table()
    assert staged["iterations"].tolist()[5:] == ["6", "24", "101", "536", "4261", "-"]
    laws = mapa.noise_table()
    assert laws.shape == (15, 7)
    rows = laws.set_index(["law", "d"])
    assert rows.loc[("spherical_laplace", 784), "second_moment"] == 615_440
    assert rows.loc[("radial_exponential", 784), "epsilon_dp"] == "no"
    assert rows.loc[("spherical_laplace", 784), "epsilon_dp"] == "yes"
