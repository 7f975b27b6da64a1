"""The papers' networks for the tables of the core's tests."""

from typing import Any

from tests.golden.cases import SGD, VAFL, case
from tests.support import SGD as CLIENTS
from tests.support import VAFL as PARTIES
from tests.support import merge

DIGITS = {"kind": "digits"}
IMAGES = {"kind": "synthetic_images", "side": 32, "channels": 3, "limit": 50}


def strips(**options: Any) -> dict[str, Any]:
    """Returns a problem of two parties, each with half of every image."""
    return {
        "data": {"kind": "digits", "classes": "even_odd"},
        "partition": {"kind": "strips", "parties": 2},
        "model": {"kind": "view_cnn", "kernel": 2, "image": [8, 4, 1], **options},
    }


def rows(data: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Returns a problem of clients with a network for CIFAR-10."""
    return {
        "data": data,
        "partition": {"kind": "iid", "clients": 4},
        "model": {"kind": "cifar_net", **options},
    }


BIG_MODELS = {
    "view_cnn": case("asynchronous", strips(), VAFL),
    "cifar_net": case("asynchronous", rows(IMAGES, image=[32, 32, 3], width=0.25), SGD),
}
NEED_FILES = {
    kind: merge(merge(PARTIES, CLIENTS), {"problem": {"data": {"kind": kind}}})
    for kind in ("speech", "modelnet40", "spoken_digits")
}
"""Scenarios of sets whose files tests do not have."""
TREES = BIG_MODELS | NEED_FILES
LOWERED = {
    "cifar_net": (CLIENTS, {"problem": rows(DIGITS, width=0.0625)}),
    "cifar_net, norm batch": (
        CLIENTS,
        {"problem": rows(DIGITS, width=0.0625, norm="batch")},
    ),
    "view_cnn": ({"problem": strips(channels=[2, 3], dense=4)},),
}
