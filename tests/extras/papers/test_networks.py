"""The papers' networks in the tests of all models; `refusals/` has scenarios."""

from typing import Any

import jax
import pytest

from stalesim.simulator.extras.papers.cifar_net.part import CifarNet
from stalesim.simulator.extras.papers.view_cnn.part import ViewCnn
from tests.unit.models import test_deep as every

MODELS: dict[str, tuple[Any, int]] = {
    "view_cnn": (ViewCnn(channels=(2, 3), dense=4, image=(5, 6, 1)), 30),
    "cifar_net": (CifarNet(name="resnet18", width=0.0625, image=(8, 8, 1)), 64),
}
"""Both, and columns of a view that they take."""


@pytest.fixture
def _tables(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(every, "MODELS", MODELS)
    with jax.enable_x64(True):
        yield


@pytest.mark.long
@pytest.mark.usefixtures("_tables")
@pytest.mark.parametrize("name", MODELS)
def test_both_serve_a_party_with_views(name: str) -> None:
    every.test_every_model_serves_a_party_with_views(name)


@pytest.mark.usefixtures("_tables")
def test_what_is_sent_to_a_network_does_not_start_at_zero() -> None:
    every.test_what_is_sent_to_a_network_does_not_start_at_zero("view_cnn")


@pytest.mark.usefixtures("_tables")
def test_noise_of_zero_changes_nothing_and_all_layers_have_some() -> None:
    every.test_noise_of_zero_changes_nothing_and_all_layers_have_some("view_cnn")
