"""The choice of Byzantine clients, and the attacks that replace their work.

An attack comes after the stages of sending, which do not bind a Byzantine client: it
has the message after clipping, noise or compression, and sends any message with the
bytes of an honest one. Its time is an honest job's; `clients.slowdowns` make it late on
purpose. An attack on data trains on rows with changed labels, and sends the result.
"""

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from jaxtyping import Bool, Float, Num
from pydantic import Field, model_validator

from ...catalogue.algorithms.federated.chain import (
    AttackPart,
    Chained,
    StagePart,
    in_program,
)
from ...catalogue.algorithms.federated.clients import Count, LocalWork
from ...catalogue.algorithms.federated.stages import ClientJob, Contributions, ServerRow
from ...parts.base import LocatedError, tag
from ...parts.errors import ScenarioError
from ...parts.lazy import Late
from ...problem.constants import Constants
from ...world.streams import Purpose, Streams

if TYPE_CHECKING:
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    from jaxtyping import Array, PyTree

    from ...engine import kernel
    from ...engine.client_work import Work
    from ...engine.setup import RunSetup
    from ...problem.horizontal import HorizontalProblem
else:
    eqx, jax, jnp = Late("equinox"), Late("jax"), Late("jax.numpy")
    kernel = Late("...engine.kernel", __package__)
    Array = PyTree = HorizontalProblem = RunSetup = Work = Any


class EnemyOptions(StagePart):
    """Common base of all attacks: their clients. A client has one attack."""

    clients: Annotated[tuple[Count, ...], Field(min_length=1)] | None = None
    """Their numbers, from 1."""
    share: Annotated[float, Field(ge=0, lt=1)] | None = None
    """Alternatively, their share of all clients, to the nearest whole number of
    clients. A keyed draw puts all clients in an order, of which the first ones that no
    attack names are Byzantine: those of a smaller share are among those of a larger
    one. A further attack with a share takes the next ones."""

    @model_validator(mode="after")
    def _named_or_drawn(self) -> "EnemyOptions":
        if (self.clients is None) == (self.share is None):
            raise ValueError(
                "must have either clients or share, not both or neither; remove one or "
                "add one"
            )
        return self

    @property
    def numbers(self) -> dict[str, float]:
        """Options in which runs of one program may differ."""
        fractions = (kv for kv in self if isinstance(kv[1], float))
        return {key: value for key, value in fractions if key != "share"}

    def structure(self) -> dict[str, object]:
        return super().structure() | dict.fromkeys(EnemyOptions.model_fields)

    def fits(self, method: Chained) -> None:
        """Refuses clients that an attack before it names as well."""
        super().fits(method)
        before = method.stages[: _place(self, method)]
        twice = _named(before) & {*(self.clients or ())}
        if twice:
            raise method.refusal(
                self,
                "clients",
                f"must name clients of no attack before it, got {min(twice)} again; "
                f"remove it there or here",
            )

    def among(self, method: Chained, num_clients: int, seed: int) -> np.ndarray:
        """Returns flags of the Byzantine clients, `[K]`.

        Raises:
            ScenarioError: A number is above the last client's, or attacks with shares
                leave too few clients.
        """
        everyone = np.arange(num_clients)
        if self.clients is not None:
            if max(self.clients) > num_clients:
                raise ScenarioError(
                    f"algorithm.chain must name Byzantine clients from 1 to "
                    f"{num_clients}, got {max(self.clients)}; change its clients"
                )
            return np.isin(everyone + 1, self.clients)
        drawn = Streams(seed).scattered(Purpose.ROLE, everyone, np.zeros(num_clients))
        order = np.argsort(drawn, kind="stable")
        named = [n for n in _named(method.stages) if n <= num_clients]
        free = order[~np.isin(order + 1, named)]
        before = _attacks(method.stages[: _place(self, method)])
        first = sum(each.number_of(num_clients) for each in before)
        end = first + self.number_of(num_clients)
        if end > free.size:
            raise ScenarioError(
                f"algorithm.chain must have attacks on at most {num_clients} clients "
                f"together, got {num_clients - free.size + end}; lower a share"
            )
        return np.isin(everyone, free[first:end])

    def number_of(self, num_clients: int) -> int:
        """Returns the number of Byzantine clients for its share; 0 if it names them."""
        return round((self.share or 0) * num_clients)

    def roles(self, method: Chained, num_clients: int, seed: int) -> tuple[str, ...]:
        """Returns the kind of the attack for its Byzantine clients, "" for others."""
        enemies = self.among(method, num_clients, seed)
        return tuple(tag(type(self)) if enemy else "" for enemy in enemies)


class EnemyPart(EnemyOptions, AttackPart):
    """Common base of the attacks on messages: they replace Byzantine clients' work."""

    _enemies: Bool[Array, " K"]
    _honest: Bool[Array, " K"]

    def make(self, setup: RunSetup, constants: Constants) -> Self:
        """Returns an attack by the Byzantine clients of a run."""
        method = setup.scenario.algorithm
        assert isinstance(method, Chained)  # whose stage it is
        K, seed = setup.shape.num_clients, setup.run.seed
        honest = np.array([not role for role in method.roles(K, seed)])
        return in_program(
            self,
            {*type(self).model_fields} - {*EnemyOptions.model_fields},
            _enemies=jnp.asarray(self.among(method, K, seed)),
            _honest=jnp.asarray(honest),
        )

    def __call__(
        self, row: ServerRow, contributions: Contributions, state: PyTree
    ) -> tuple[Contributions, PyTree]:
        """Returns the contributions with the enemies' messages."""
        workers = row.event.worker
        flags, honest = (
            each.at[workers].get(mode="fill", fill_value=False)
            for each in (self._enemies, self._honest)
        )
        state = self.after(row, contributions, honest, state)
        message = contributions.message
        assert message is not None
        attacked = jax.lax.cond(
            flags.any(),
            lambda: jnp.where(
                kernel.broadcast_flags(flags, message),
                self.attack(message, state),
                message,
            ),
            lambda: message,
        )
        return contributions._replace(message=attacked), state

    def after(
        self,
        row: ServerRow,
        contributions: Contributions,
        honest: Bool[Array, " W"],
        state: PyTree,
    ) -> PyTree:
        """Returns the attacker's state after a row: by default as before."""
        return state

    @abstractmethod
    def attack(
        self, message: Float[Array, "W ..."], state: PyTree
    ) -> Float[Array, "W ..."]:
        """Returns the replacement of each message if a Byzantine client sends it.

        It is not called for rows without Byzantine clients.
        """


class InformedPart(EnemyPart):
    """Common base of the attacks that use the last message of every honest client.

    Clients without any attack are honest. Messages of the row are included. In rounds
    of everyone they are the round's; under asynchrony they are those that have arrived
    before the attacker's own message. Until there is one, Byzantine clients send their
    own work.
    """

    def start(self, problem: HorizontalProblem, weights: Array) -> PyTree:
        """Returns a table of no message, and flags of the clients that have sent."""
        K = problem.num_clients
        return jnp.zeros((K, *weights.shape), weights.dtype), jnp.zeros(K, bool)

    def after(
        self,
        row: ServerRow,
        contributions: Contributions,
        honest: Bool[Array, " W"],
        state: PyTree,
    ) -> PyTree:
        messages, known = state
        workers = jnp.where(honest, row.event.worker, known.size)  # out of the table
        messages = messages.at[workers].set(contributions.message, mode="drop")
        return messages, known.at[workers].set(True, mode="drop")

    def attack(
        self, message: Float[Array, "W ..."], state: PyTree
    ) -> Float[Array, "W ..."]:
        """Returns the messages of the Byzantine clients, all the same."""
        messages, known = state
        share = known.astype(messages.dtype) / jnp.maximum(known.sum(), 1)
        mean = jnp.tensordot(share, messages, 1)
        deviation = jnp.sqrt(jnp.tensordot(share, (messages - mean[None]) ** 2, 1))
        return jnp.where(known.any(), self.chosen(mean, deviation)[None], message)

    @abstractmethod
    def chosen(self, mean: Array, deviation: Array) -> Array:
        """Returns the malicious message, from mean and deviation of the honest ones."""


def _attacks(stages: tuple[StagePart, ...]) -> list[EnemyOptions]:
    return [stage for stage in stages if isinstance(stage, EnemyOptions)]


def _named(stages: tuple[StagePart, ...]) -> set[int]:
    return {number for each in _attacks(stages) for number in each.clients or ()}


def _place(part: StagePart, method: Chained) -> int:
    return next(i for i, one in enumerate(method.stages) if one is part)


class SignFlip(EnemyPart):
    """Byzantine clients send -factor times their work.

    Source: Li et al., RSA: Byzantine-Robust Stochastic Aggregation Methods (2019),
    section 5; negative gradients of Yang and Li, BASGD (2021), section 5.
    """

    kind: Literal["sign_flip"] = "sign_flip"
    factor: Annotated[float, Field(gt=0)] = 1.0
    """Length of the message over the length of the work."""

    def attack(
        self, message: Float[Array, "W ..."], state: PyTree
    ) -> Float[Array, "W ..."]:
        return -self.factor * message


class Alie(InformedPart):
    """A little is enough: Byzantine clients send the honest mean less z deviations.

    Coordinate by coordinate, of the last messages of all honest clients. In the paper
    Byzantine clients have but their own honest work; with m of them among n, z is the
    quantile of the normal law at (n - m - s) / (n - m), s = floor(n / 2 + 1) - m.

    Source: Baruch, Baruch and Goldberg, A Little Is Enough (2019), Algorithm 3.
    """

    kind: Literal["alie"] = "alie"
    deviations: float
    """z."""

    def chosen(self, mean: Array, deviation: Array) -> Array:
        return mean - self.deviations * deviation


class InnerProduct(InformedPart):
    """Inner product manipulation: sends -factor times the honest mean.

    It is the mean of the last messages of all honest clients.

    Source: Xie, Koyejo and Gupta, Fall of Empires (2019), section 4.
    """

    kind: Literal["inner_product"] = "inner_product"
    factor: Annotated[float, Field(gt=0)]
    """epsilon."""

    def chosen(self, mean: Array, deviation: Array) -> Array:
        return -self.factor * mean


class LabelFlip(EnemyOptions, LocalWork):
    """Local steps; Byzantine clients use class C - 1 - y for y on their samples.

    Their work and their messages are honest otherwise. Their training losses are on the
    wrong labels.

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
                f"samples must be left out with {self.kind}, because Byzantine "
                "clients have separate samples, got 'common'; remove it"
            )

    def owned(self, setup: RunSetup) -> Bool[np.ndarray, " N"]:
        """Returns flags of the rows of Byzantine clients.

        Raises:
            ScenarioError: There are no classes, or an honest client has such a row.
        """
        data, pools = setup.shares.data, setup.shares.pools
        if not data.num_classes:
            raise ScenarioError(
                f"algorithm.chain must have another work than {self.kind} for data "
                f"without classes; take local_work, and an attack on messages"
            )
        method = setup.scenario.algorithm
        assert isinstance(method, Chained)  # whose stage it is
        enemies = self.among(method, len(pools), setup.run.seed)
        held = np.zeros((2, len(data.y_train)), bool)
        for enemy, pool in zip(enemies, pools, strict=True):
            held[int(enemy), pool] = True
        if held.all(axis=0).any():
            raise ScenarioError(
                f"problem.partition must give Byzantine clients rows of their own for "
                f"{self.kind}, got {held.all(axis=0).sum()} that honest clients have "
                "as well; take another partition"
            )
        return held[1]

    def make(self, setup: RunSetup, constants: Constants, **facts: object) -> Self:
        """Returns the local steps of a run with Byzantine clients."""
        owned, data = self.owned(setup), setup.shares.data
        y, flags = data.y_train, owned.reshape(-1, *(1,) * (data.y_train.ndim - 1))
        labels = jnp.asarray(np.where(flags, data.num_classes - 1 - y, y))
        return super().make(setup, constants, _labels=labels, **facts)

    def __call__(self, job: ClientJob, state: PyTree) -> tuple[Work, PyTree]:
        """Returns the contribution, and the state of the client's optimiser."""
        labels = self._labels.astype(job.problem.y.dtype)
        problem = eqx.tree_at(lambda p: p.y, job.problem, labels)
        return super().__call__(job._replace(problem=problem), state)
