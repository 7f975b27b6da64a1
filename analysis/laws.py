"""The laws of a world's clients, those of like clients once.

Scenarios come as the plain dictionaries of a manifest. A parameter of a law is a
number, an expression in m and M or a list: an array of one value, or of one per client.
"""

from functools import cache, cached_property
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from pydantic import TypeAdapter

from ..simulator.parts.expressions import depends_on_client, evaluate, per_client
from ..simulator.world.laws.base import AnyLaw, ClosedForm, Law
from ..simulator.world.laws.distributions import is_discrete
from .facts import Entry
from .theory import Delay, Lattice

LOSING = ("availability", "leave", "crashes", "loss", "join")
"""Entries by which a client is away, or its jobs are lost."""


class InfiniteMeanError(ValueError):
    """A law has no finite mean, so that no mean of a steady state exists."""


class _Zero:
    """The law of a variable that is always zero, as SciPy's discrete laws are."""

    def cdf(self, x: ArrayLike) -> Float[np.ndarray, "..."]:
        return np.where(np.asarray(x) >= 0, 1.0, 0.0)

    def sf(self, x: ArrayLike) -> Float[np.ndarray, "..."]:
        return np.where(np.asarray(x) >= 0, 0.0, 1.0)

    def mean(self) -> float:
        return 0.0

    def support(self) -> tuple[float, float]:
        return 0.0, 0.0


def rates(form: ClosedForm) -> Float[np.ndarray, " n"]:
    """Returns the rates of exponential laws from zero, per second.

    Raises:
        ValueError: They are other laws, or draws depend on those before them.
    """
    check_independent(form)
    name = getattr(form.family, "name", None)
    if name != "expon" or (form.loc + form.shift).any():
        raise ValueError("the law is not exponential")
    return np.broadcast_to(1 / form.scale, form.number)


def check_independent(form: ClosedForm) -> None:
    """Refuses draws that depend on those before them, where a formula does not.

    Raises:
        ValueError: They do.
    """
    if not form.independent:
        raise ValueError("a client's draws depend on those before them")


def _distinct(form: ClosedForm) -> list[tuple[Delay, int]]:
    columns = np.broadcast_arrays(
        form.loc, form.scale, form.shift, *form.shapes.values()
    )
    stacked = np.stack(columns, axis=1)
    rows, counts = np.unique(stacked, axis=0, return_counts=True)
    if len(stacked) == 1:  # of all clients
        counts = counts * form.number
    return [
        (_frozen(form, *map(float, row)), int(count))
        for row, count in zip(rows, counts, strict=True)
    ]


def _frozen(
    form: ClosedForm, loc: float, scale: float, shift: float, *shapes: float
) -> Delay:
    family: Any = form.family
    if family is None:
        return Lattice(_Zero(), 1.0, loc)
    values = dict(zip(form.shapes, shapes, strict=True))
    if is_discrete(family):
        return Lattice(family(**values, loc=loc), scale, shift)
    return family(**values, loc=loc + shift, scale=scale)


class ScenarioWorld:
    """A scenario's world, group by group.

    Args:
        scenario: Scenario of one run, from its manifest.
        num_clients: K.
        messages: Bytes by direction, `upload` or `download`.
        pooled: Whether data are in one place, so that no client's laws play a part.
    """

    def __init__(
        self,
        scenario: Entry,
        num_clients: int,
        messages: dict[str, float],
        *,
        pooled: bool = False,
    ) -> None:
        common = dict(scenario.get("clients") or {})
        groups = common.pop("groups", None) or {}
        self.protocol: Entry = scenario.get("protocol") or {}
        self.server: Entry = scenario.get("server") or {}
        self.selection: Entry = common.get("selection") or {}
        self.slowdowns = common.get("slowdowns")
        # Entries of clients in succession that have the same, and their number.
        self.groups: list[tuple[Entry, int]] = []
        if not pooled:
            self.groups = [
                (common | group, int(group["number"]))
                for group in groups.values() or [{"number": num_clients}]
            ]
        self.number = sum(number for _, number in self.groups)
        self._messages, self._stages = messages, {}

    def has(self, *keys: str) -> bool:
        """Returns whether some client has one of these entries."""
        return any(config.get(key) for config, _ in self.groups for key in keys)

    @cached_property
    def keeps_all(self) -> bool:
        """Whether all clients are always available and all messages arrive."""
        return not self.has(*LOSING)

    @property
    def is_private(self) -> bool:
        """Whether no client's cycle depends on the others."""
        return not (any(self.server.values()) or self.selection or self.slowdowns)

    @property
    def draws_per_job(self) -> bool:
        """Whether a draw of the computing time is a whole job's, whatever its rows."""
        return all(
            config.get("compute_per", "job") == "job" for config, _ in self.groups
        )

    def laws(self, stage: str) -> list[ClosedForm | None]:
        """Returns each group's laws of a stage; None where it takes no time.

        Raises:
            ValueError: A law has no closed form.
        """
        self._check_power(stage)
        if stage not in self._stages:
            self._stages[stage] = [
                laws(config[stage], number) if config.get(stage) else None
                for config, number in self.groups
            ]
        return self._stages[stage]

    def means(self, stage: str) -> Float[np.ndarray, " K"]:
        """Returns each client's mean time of a stage, seconds.

        Raises:
            InfiniteMeanError: One is not finite.
            ValueError: The mean of a law is unknown.
        """
        self._check_power(stage)
        return _joined(
            [
                means(config[stage], number) if config.get(stage) else np.zeros(number)
                for config, number in self.groups
            ]
        )

    def _check_power(self, stage: str) -> None:
        if stage == "compute" and self.has("power"):
            raise ValueError("computing power changes over time")

    def compute(self) -> list[ClosedForm]:
        """Returns each group's laws of a whole cycle, where clients only compute.

        Raises:
            ValueError: They do more, or a law has no closed form or no finite mean.
        """
        plain = self.keeps_all and self.is_private
        if not plain or self.has("idle", "read", "upload", "download"):
            raise ValueError("clients do more than compute")
        if not self.draws_per_job:
            raise ValueError("a job's computing time is a sum of draws")
        self.means("compute")
        return [one for one in self.laws("compute") if one is not None]

    def rates(self) -> Float[np.ndarray, " K"]:
        """Returns each client's rate, where all only compute, for exponential times.

        Raises:
            ValueError: They do more, or by other laws.
        """
        return _joined([rates(one) for one in self.compute()])

    def transit(self, way: str) -> Float[np.ndarray, " K"]:
        """Returns the mean time of a message on each client's own link, seconds.

        Raises:
            InfiniteMeanError: One is not finite.
            ValueError: The mean of a law is unknown.
        """
        found = []
        for config, number in self.groups:
            link = config.get(way) or {}
            seconds = np.zeros(number)
            if link.get("latency"):
                seconds = seconds + means(link["latency"], number)
            if link.get("bandwidth") is not None:
                rate = column(link["bandwidth"], number, "bandwidth")
                seconds = seconds + self._messages[way] / rate
            found.append(seconds)
        return _joined(found)


def laws(config: Entry, number: int) -> ClosedForm:
    """Returns the laws of durations of a group's clients.

    Raises:
        ValueError: it has no closed form, or a parameter of it is a law itself.
    """
    return _law(config).closed_form(number)


def means(config: Entry, number: int) -> Float[np.ndarray, " n"]:
    """Returns the mean of each client's durations, seconds.

    Raises:
        InfiniteMeanError: One is not finite.
        ValueError: They are not known.
    """
    found = _law(config).mean_seconds(number)
    if not np.isfinite(found).all():
        raise InfiniteMeanError("the mean is not finite")
    return np.broadcast_to(found, number)


def _law(config: Entry) -> Law:
    return _reader().validate_python(config)


@cache
def _reader() -> TypeAdapter[Law]:
    return TypeAdapter(AnyLaw)


def distinct(groups: list[ClosedForm]) -> tuple[list[Delay], list[int]]:
    """Returns the different laws of all groups' clients, and how many have each.

    They are as `analysis.theory` takes them, ordered by their parameters in a group.
    """
    pairs = [pair for group in groups for pair in _distinct(group)]
    return [law for law, _ in pairs], [count for _, count in pairs]


def column(
    quantity: float | str | list[float] | tuple[float, ...] | dict[str, object],
    number: int,
    name: str,
) -> Float[np.ndarray, " _"]:
    """Returns a quantity's value for every client, or one for all."""
    if isinstance(quantity, dict):
        raise ValueError(f"{name} is drawn for every client")
    if isinstance(quantity, list | tuple) or depends_on_client(quantity):
        values = tuple(quantity) if isinstance(quantity, list) else quantity
        return np.array([float(v) for v in per_client(values, number, name)])
    return np.array([float(evaluate(quantity, 1, number))])


def _joined(parts: list[Float[np.ndarray, " _"]]) -> Float[np.ndarray, " K"]:
    return np.concatenate(parts) if parts else np.zeros(0)
