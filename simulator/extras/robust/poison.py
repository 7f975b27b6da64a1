"""Enemies that learn from rows that they have changed: the common base."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Num

from ...catalogue.algorithms.federated.chain import Chained
from ...catalogue.algorithms.federated.clients import LocalWork
from ...catalogue.algorithms.federated.stages import ClientJob
from ...files.timeline import NO_SAMPLE
from ...parts.base import LocatedError
from ...parts.errors import ScenarioError
from ...parts.lazy import Late
from ...parts.parts import tag
from ...problem.constants import Constants
from .enemies import EnemyOptions

if TYPE_CHECKING:
    import equinox as eqx
    import jax.numpy as jnp
    from jaxtyping import Array

    from ...engine import client_work
    from ...engine.client_work import Work
    from ...engine.setup import RunSetup
else:
    eqx, jnp = Late("equinox"), Late("jax.numpy")
    client_work = Late("...engine.client_work", __package__)
    Array = Work = RunSetup = Any


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
    _labels: Num[Array, " N *L"]
    _marked: Bool[Array, " N"] | None
    _trigger: Trigger | None = None
    _scales: Float[Array, " K"] | None

    @property
    def beyond_gradients(self) -> str:
        return tag(type(self))

    @property
    def pattern(self) -> Trigger | None:
        """The pattern in the rows that it marks; by default none."""
        return None

    @property
    def trigger(self) -> Trigger | None:
        """The pattern, in a run's program of arrays."""
        return self._trigger or self.pattern

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

    def make(self, setup: RunSetup, constants: Constants, **facts: Any) -> Any:
        """Returns the local steps of a run with enemies."""
        poison, trigger, scales = self.poison(setup), None, None
        if self.pattern is not None:
            method, K = setup.scenario.algorithm, setup.shape.num_clients
            enemies = jnp.asarray(self.among(method, K, setup.run.seed))
            scales = jnp.where(enemies, jnp.asarray(self.scale, float), 1)
            trigger = Trigger(*map(jnp.asarray, self.pattern))
        return super().make(
            setup,
            constants,
            _labels=jnp.asarray(poison.labels),
            _marked=None if poison.marked is None else jnp.asarray(poison.marked),
            _trigger=trigger,
            _scales=scales,
            **facts,
        )

    def __call__(self, job: ClientJob, state: Any) -> tuple[Work, Any]:
        """Returns the contribution, and the state of the client's optimiser."""
        labels = self._labels.astype(job.problem.y.dtype)
        problem = eqx.tree_at(lambda p: p.y, job.problem, labels)
        job = self._triggered(job._replace(problem=problem))
        work, state = super().__call__(job, state)
        if self._scales is not None:
            scale = self._scales.at[job.worker].get(mode="fill", fill_value=1)
            message = scale.astype(work.message.dtype) * work.message
            work = work._replace(message=message)
        return work, state

    def _triggered(self, job: ClientJob) -> ClientJob:
        """Returns the job on a problem of its rows alone, with the pattern in some."""
        if self._marked is None or self._trigger is None:
            return job
        samples = job.samples.reshape(-1)
        x, y, present = client_work.gathered(job.problem, samples)
        marked = self._marked.at[samples].get(mode="fill", fill_value=False)
        x = jnp.where(marked[:, None], with_pattern(x, self._trigger), x)
        problem = eqx.tree_at(lambda p: (p.x, p.y), job.problem, (x, y))
        own = jnp.where(present, jnp.arange(samples.size), NO_SAMPLE)
        samples = own.astype(samples.dtype).reshape(job.samples.shape)
        return job._replace(problem=problem, samples=samples)


def with_pattern(x: Float[Array, "S P"], trigger: Trigger) -> Float[Array, "S P"]:
    """Returns rows of a model's inputs, each with the pattern of a trigger.

    The columns of a data set are the first ones of all models' inputs.
    """
    return x.at[:, trigger.features].set(jnp.asarray(trigger.value, x.dtype))


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
