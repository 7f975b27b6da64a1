"""Enemies that learn from rows whose labels they have changed."""

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from jaxtyping import Bool, Num

from ...catalogue.algorithms.federated.chain import Chained
from ...catalogue.algorithms.federated.clients import LocalWork
from ...catalogue.algorithms.federated.stages import ClientJob
from ...parts.base import LocatedError
from ...parts.errors import ScenarioError
from ...parts.lazy import Late
from ...problem.constants import Constants
from .enemies import EnemyOptions

if TYPE_CHECKING:
    import equinox as eqx
    import jax.numpy as jnp
    from jaxtyping import Array, PyTree

    from ...engine import client_work
    from ...engine.client_work import Work
    from ...engine.setup import RunSetup
else:
    eqx, jnp = Late("equinox"), Late("jax.numpy")
    client_work = Late("...engine.client_work", __package__)
    Array = PyTree = Work = RunSetup = Any


class LabelFlip(EnemyOptions, LocalWork):
    """Local steps, of enemies on their own samples with class C - 1 - y for y.

    Their work and what they send is honest otherwise. Training losses of enemies are on
    the wrong labels.

    Source: Fang et al., Local Model Poisoning Attacks to Byzantine-Robust Federated
    Learning (2020), section 4.1.
    """

    kind: Literal["label_flip"] = "label_flip"  # pyright: ignore
    _labels: Num[Array, " N *L"]

    @property
    def beyond_gradients(self) -> str:
        return self.kind

    def fits(self, method: Chained) -> None:
        """Refuses samples that no client has to itself."""
        super().fits(method)
        if method.samples == "common":
            raise LocatedError(
                f"samples must be left out with {self.kind}, for enemies have "
                f"samples of their own, got 'common'; remove it"
            )

    def owned(self, setup: RunSetup) -> Bool[np.ndarray, " N"]:
        """Returns flags of the rows that enemies have.

        Raises:
            ScenarioError: There are no classes, or an honest client has an enemy's row.
        """
        data, pools = setup.shares.data, setup.shares.pools
        if not data.num_classes:
            raise ScenarioError(
                f"algorithm.chain must have another work than {self.kind} for data "
                f"without classes; take local_work, and an attack on messages"
            )
        method = setup.scenario.algorithm
        enemies = self.among(method, len(pools), setup.run.seed)
        held = np.zeros((2, len(data.y_train)), bool)
        for enemy, pool in zip(enemies, pools, strict=True):
            held[int(enemy), pool] = True
        if held.all(axis=0).any():
            raise ScenarioError(
                f"problem.partition must give enemies rows of their own for "
                f"{self.kind}, got {held.all(axis=0).sum()} that honest clients have "
                f"as well; take another partition"
            )
        return held[1]

    def make(self, setup: RunSetup, constants: Constants, **facts: object) -> Self:
        """Returns the local steps of a run with enemies."""
        owned, data = self.owned(setup), setup.shares.data
        y, flags = data.y_train, owned.reshape(-1, *(1,) * (data.y_train.ndim - 1))
        labels = jnp.asarray(np.where(flags, data.num_classes - 1 - y, y))
        return super().make(setup, constants, _labels=labels, **facts)

    def __call__(self, job: ClientJob, state: PyTree) -> tuple[Work, PyTree]:
        """Returns the contribution, and the state of the client's optimiser."""
        labels = self._labels.astype(job.problem.y.dtype)
        problem = eqx.tree_at(lambda p: p.y, job.problem, labels)
        return super().__call__(job._replace(problem=problem), state)
