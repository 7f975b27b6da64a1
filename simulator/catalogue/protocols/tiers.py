"""TiFL: each choice draws a tier of clients of like speed, then clients of it."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from ...parts.base import LocatedError
from ...parts.errors import ScenarioError
from ...world.preferences import Choose, Preference, PreferringPool

Chance = Annotated[float, Field(ge=0)]


class Tiers(Preference):
    """Of clients of one tier, drawn for each choice: clients of like speed.

    Clients are sorted by the medians of their computing times and divided into tiers as
    evenly as goes, the fastest first. Within a tier, chances are equal. A tier of which
    no client is free is left out of the draw; where no other has a chance, the others
    have equal ones. A tier with too few free clients gives all of them.

    Source: Chai et al., TiFL: A Tier-based Federated Learning System (2020), static
    selection; its profiling rounds are the laws' medians here, and its adaptive
    chances, by each tier's test accuracy, are left out.
    """

    kind: Literal["tiers"] = "tiers"
    tiers: Annotated[int, Field(ge=2)] = 5
    """Number of tiers."""
    chances: tuple[Chance, ...] | None = None
    """Chance of each tier, up to a common factor, that of the fastest first; by default
    equal ones."""

    @model_validator(mode="after")
    def _a_chance_each(self) -> "Tiers":
        if self.chances is None:
            return self
        if len(self.chances) != self.tiers or not any(self.chances):
            raise LocatedError(
                f"chances must be one number for each of the {self.tiers} tiers, not "
                f"all 0, got {list(self.chances)}; change them or tiers",
            )
        return self

    def make(self, pool: PreferringPool) -> Choose:
        medians = [each for group in pool.world.groups for each in group.medians()]
        if self.tiers > len(medians):
            raise ScenarioError(
                f"clients.selection.prefer.tiers must be at most the number of clients "
                f"({len(medians)}), got {self.tiers}; lower it"
            )
        order = np.argsort(medians, kind="stable")
        tier_of = np.empty(order.size, int)
        for tier, members in enumerate(np.array_split(order, self.tiers)):
            tier_of[members] = tier
        chances = np.array(self.chances or (1.0,) * self.tiers)

        def choose(number: int, now: float) -> list[int]:
            free = np.array(pool.free(now), int)
            there = np.bincount(tier_of[free], minlength=self.tiers) > 0
            if not there.any():
                return []
            weights = chances * there if (chances * there).any() else 1.0 * there
            uniform = pool.uniforms(1 + free.size)
            edges = np.cumsum(weights) / weights.sum()
            tier = int(np.searchsorted(edges, uniform[0], side="right"))
            mine = tier_of[free] == tier
            first = np.argsort(uniform[1:][mine], kind="stable")[:number]
            return free[mine][first].tolist()

        return choose
