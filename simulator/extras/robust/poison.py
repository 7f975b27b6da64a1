"""Enemies that learn from rows that they have changed: the common base. No JAX here."""

from abc import abstractmethod
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Num

from ...algorithms.federated.chain import Chained
from ...algorithms.federated.parts import LocalWork
from ...config.base import LocatedError
from ...config.errors import ScenarioError
from ...config.parts import tag
from .enemies import EnemyOptions


class Trigger(NamedTuple):
    """A pattern in a row, and the class that enemies have a model find in it.

    Attributes:
        features: Columns of the pattern, from 0.
        value: Value of these columns.
        target: The class, from 0.
    """

    features: Any
    value: Any
    target: Any


class Poison(NamedTuple):
    """What enemies change of the training rows.

    Attributes:
        labels: Labels of all training rows.
        marked: Flags of the rows that bear the trigger; None without one.
    """

    labels: Num[np.ndarray, " N *L"]
    marked: Bool[np.ndarray, " N"] | None = None


class PoisonPart(EnemyOptions, LocalWork):
    """Common base of the attacks on data: local steps, of enemies on changed rows.

    They change rows of their own alone. Training losses of enemies are on these.
    """

    kind: str  # pyright: ignore
    made_by: ClassVar[str] = f"{__package__}.running:poisoned"

    @property
    def beyond_gradients(self) -> str:
        return tag(type(self))

    @property
    def trigger(self) -> Trigger | None:
        """The pattern in the rows that it marks; by default none."""
        return None

    @property
    def scale(self) -> float:
        """Length of what enemies send over that of their work."""
        return 1.0

    def fits(self, method: Chained) -> None:
        """Refuses samples that no client has to itself."""
        super().fits(method)
        if method.samples == "common":
            raise LocatedError(
                f"samples must be left out with {tag(type(self))}, for enemies have "
                f"samples of their own, got 'common'; remove it",
            )

    @abstractmethod
    def poison(self, setup: Any) -> Poison:
        """Returns what enemies change.

        Args:
            setup: The facts of the run.

        Raises:
            ScenarioError: The data do not allow it.
        """

    def owned(self, setup: Any) -> Bool[np.ndarray, " N"]:
        """Returns flags of the rows that enemies have.

        Args:
            setup: The facts of the run.

        Raises:
            ScenarioError: There are no classes, or an honest client has an enemy's row.
        """
        data, pools, kind = setup.shares.data, setup.shares.pools, tag(type(self))
        if not data.num_classes:
            raise ScenarioError(
                f"algorithm.chain must have another work than {kind} for data without "
                f"classes; take local_work, and an attack on messages"
            )
        method = setup.scenario.algorithm
        enemies = self.among(method, len(pools), setup.run.seed)
        held = np.zeros((2, len(data.y_train)), bool)
        for enemy, pool in zip(enemies, pools, strict=True):
            held[int(enemy), pool] = True
        if held.all(axis=0).any():
            raise ScenarioError(
                f"problem.partition must give enemies rows of their own for {kind}, "
                f"got {held.all(axis=0).sum()} that honest clients have as well; take "
                f"another partition"
            )
        return held[1]


class LabelFlip(PoisonPart):
    """Local steps, of enemies on their own samples with class C - 1 - y for y.

    Their work and what they send is honest otherwise. Training losses of enemies are on
    the wrong labels.

    Source: Fang et al., Local Model Poisoning Attacks to Byzantine-Robust Federated
    Learning (2020), section 4.1.
    """

    kind: Literal["label_flip"] = "label_flip"  # pyright: ignore

    def poison(self, setup: Any) -> Poison:
        owned, data = self.owned(setup), setup.shares.data
        y, flags = data.y_train, owned.reshape(-1, *(1,) * (data.y_train.ndim - 1))
        return Poison(np.where(flags, data.num_classes - 1 - y, y))
