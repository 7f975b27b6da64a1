"""A law of durations: exponential times, and a pause now and then."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from stalesim.simulator.parts.expressions import Quantity
from stalesim.simulator.world.laws.base import ClientValues, Law


class MyPart(Law):
    """Exponential times; after every few of them the client also pauses."""

    law: Literal["my_part"] = "my_part"
    mean: Quantity
    """Virtual seconds: a number, an expression in m and M, or one number per client."""
    every: Annotated[int, Field(ge=1)] = 10
    pause: Annotated[float, Field(ge=0)] = 1.0
    """Virtual seconds."""

    def make(self, population):
        return MyPartSampler(self, population)


class MyPartSampler:
    def __init__(self, config, population):
        self.config = config
        self.mean = ClientValues.given(config.mean, population, "my_part.mean")

    def lattice(self):
        return None

    def draw(self, draws, tick):
        # All randomness comes from draws.uniform, by inversion.
        own = -self.mean.of(draws.who) * np.log1p(-draws.uniform)
        pauses = draws.positions % self.config.every == self.config.every - 1
        return own + pauses * self.config.pause


STALESIM = {"laws": (MyPart,)}
