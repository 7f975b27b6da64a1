"""Random streams of the data sets."""

import pkgutil
from collections import Counter
from importlib import import_module

from stalesim.simulator.catalogue import data
from stalesim.simulator.problem.data.base import DIVISION, ORDER, generator

NUM_STREAMS = 5
"""Two of every data set, three modules with drawn sets."""


def streams() -> list[int]:
    found = [DIVISION, ORDER]
    for module in pkgutil.walk_packages(
        data.__path__, "stalesim.simulator.catalogue.data."
    ):
        names = vars(import_module(module.name)).items()
        found += [value for name, value in names if name.endswith("STREAM")]
    return found


def test_no_two_modules_draw_from_one_stream() -> None:
    assert len(streams()) >= NUM_STREAMS
    assert max(Counter(streams()).values()) == 1


def test_streams_are_independent() -> None:
    draws = {generator(0, stream).random() for stream in streams()}
    assert len(draws) == len(streams())
