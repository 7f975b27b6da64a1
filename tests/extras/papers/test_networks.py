"""The papers' networks in the tests of all models, and scenarios with them."""

import re
from pathlib import Path
from typing import Any

import jax
import pytest

from stalesim.simulator.config.errors import ScenarioError
from stalesim.simulator.extras.papers.cifar_net.part import CifarNet
from stalesim.simulator.extras.papers.view_cnn.part import ViewCnn
from stalesim.simulator.scenario.reading import loads
from stalesim.simulator.scenario.study import expand, merge
from stalesim.simulator.simulation import check
from tests.unit.models import test_deep as every
from tests.unit.scenario import test_bad_networks as networks
from tests.unit.scenario.mistakes import complaint
from tests.unit.scenario.test_bad_blocks import AS_LINEAR, NO_IMAGE, PLAIN, TEN
from tests.unit.scenario.test_decentralised import ASGD, ASYNCHRONOUS, GOOD, PSGD, SIGMA

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


def changed(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def network(options: str) -> tuple[str, str]:
    return "{kind: linear}", f"{{kind: cifar_net, {options}}}"


CLIPPED = (SIGMA, "{sigma: 1, clip: sample}")
CROPPED = ("noise:", "augmentation: {crop: 2}, noise:")


@pytest.mark.parametrize(
    "changes",
    [
        (PSGD, network("norm: batch")),
        (network("norm: batch"),),
        (CLIPPED, network("norm: group")),
        (CLIPPED, CROPPED, network("norm: group, width: 0.1")),
    ],
)
def test_workers_may_normalise(changes: tuple[tuple[str, str], ...]) -> None:
    scenario = loads(changed(GOOD, *changes), "good.yaml")
    again = type(scenario).model_validate(scenario.model_dump(mode="json"))
    assert again == scenario


@pytest.mark.parametrize(
    ("changes", "place", "says"),
    [
        (
            (ASGD, ASYNCHRONOUS),
            "5: problem.model.norm ",
            "'asgd', which has no place for a batch's statistics, got 'batch'",
        ),
        (
            (CLIPPED,),
            "8: algorithm.noise.clip ",
            "must be none where samples are normalised together, got 'sample'; change",
        ),
    ],
)
def test_where_a_batch_cannot_be_normalised(
    changes: tuple[tuple[str, str], ...], place: str, says: str, tmp_path: Path
) -> None:
    said = complaint(changed(GOOD, *changes), *network("norm: batch"), tmp_path)
    assert said.startswith(place)
    assert says in said


def test_noise_in_unknown_layers(tmp_path: Path) -> None:
    model = networks.problem(model={"kind": "cifar_net"}, server=networks.SERVER)
    said = networks.complaint(tmp_path, merge(model, networks.noise(**networks.HIDDEN)))
    assert re.search(r"'cifar_net', which does not say where noise enters; rem", said)


def test_a_part_of_no_image() -> None:
    text = changed(PLAIN, (AS_LINEAR, "  model: {kind: view_cnn}\n"), TEN)
    (run,) = expand(loads(text, "study.yaml"))
    with pytest.raises(ScenarioError, match=f"{NO_IMAGE} 32 columns; set problem.mod"):
        check(run)
