"""Random worlds: everything follows from the kind and the number."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from stalesim.simulator.files.timeline import Jobs, Rows
from stalesim.simulator.parts.stop import Stop
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients
from stalesim.simulator.world.power import PowerTable
from stalesim.simulator.world.workload import Workload

KINDS = ("fixed", "universal", "heavy", "queues")
STREAM = 19
MOST = {"fixed": 40, "universal": 12, "heavy": 10, "queues": 10}
"""Most clients of a world of each kind."""


class RandomWorld(NamedTuple):
    """A world, and what the closed forms need of it.

    Attributes:
        kind: One of `KINDS`.
        number: Number of the world.
        clients: Clients, as a scenario has them.
        tau: Seconds of each client's job: constant ones, or at full power, or the least
            ones, or means.
        draw: For further choices of the methods, keyed like the world.
        laws: Law of a job of each client, frozen; of heavy worlds.
        finish: Moment at which work is done; of fixed and universal worlds.
    """

    kind: str
    number: int
    clients: dict[str, Any]
    tau: np.ndarray
    draw: np.random.Generator
    laws: tuple[Any, ...] = ()
    finish: Callable[[int, float, float], float] | None = None

    @property
    def size(self) -> int:
        """Clients."""
        return self.tau.size

    def play(self, protocol: Any, **stop: Any) -> tuple[Rows, Jobs]:
        """Plays a protocol in it and returns all rows and jobs."""
        plan = SimulatedTimeline(
            Clients.model_validate(self.clients),
            protocol,
            self.size,
            self.number,
            Stop(**stop),
            Workload(0, 0, self.size),
        )
        chunks = list(plan.chunks(1 << 16))
        rows = (
            np.concatenate(part) for part in zip(*(c.rows for c in chunks), strict=True)
        )
        jobs = (
            np.concatenate(part) for part in zip(*(c.jobs for c in chunks), strict=True)
        )
        return Rows(*rows), Jobs(*jobs)


def world(kind: str, number: int) -> RandomWorld:
    """Returns the world of a number."""
    draw = np.random.default_rng([STREAM, KINDS.index(kind), number])
    n = round(float(np.exp(draw.uniform(np.log(2), np.log(MOST[kind])))))
    tau = np.exp(draw.uniform(0, 1.5) * draw.standard_normal(n))
    make = {"fixed": _fixed, "universal": _universal, "heavy": _heavy}
    if kind == "queues":
        tau = np.exp(draw.uniform(0, 0.7) * draw.standard_normal(n))
        clients = {"compute": {"law": "expon", "scale": tau.tolist()}}
        return RandomWorld(kind, number, clients, tau, draw)
    return make[kind](number, tau, draw)


def _fixed(number: int, tau: np.ndarray, draw: np.random.Generator) -> RandomWorld:
    clients = {"compute": {"law": "constant", "value": tau.tolist()}}

    def finish(client: int, start: float, work: float) -> float:
        return start + float(tau[client]) * work

    return RandomWorld("fixed", number, clients, tau, draw, (), finish)


def _universal(number: int, tau: np.ndarray, draw: np.random.Generator) -> RandomWorld:
    """Every client has up to five powers that take turns, up to two of them 0."""
    groups, tables = {}, []
    for client, own in enumerate(tau.tolist()):
        pieces = int(draw.integers(1, 6))
        lengths = draw.exponential(4, pieces) + 0.1
        values = draw.uniform(0.05, 1, pieces)
        values[1 : 1 + int(draw.integers(0, 3))] = 0
        table = {
            "times": np.concatenate([[0.0], np.cumsum(lengths)[:-1]]).tolist(),
            "values": (values / own).tolist(),
            "period": float(lengths.sum()),
        }
        tables.append(PowerTable(**table))
        groups[f"c{client}"] = {"number": 1, "power": table}
    clients = {"compute": {"law": "constant", "value": 1}, "groups": groups}

    def finish(client: int, start: float, work: float) -> float:
        return start + tables[client].duration(start, work)

    return RandomWorld("universal", number, clients, tau, draw, (), finish)


class HeavyLaw(NamedTuple):
    """A Lomax, Weibull or log-normal law, which SciPy's frozen ones are too slow for.

    Attributes:
        name: SciPy's name.
        shape: Its one shape.
        loc: Seconds that every job takes.
        scale: Scale of the rest, seconds.
    """

    name: str
    shape: float
    loc: float
    scale: float

    def sf(self, x: Any) -> Any:
        """Returns the chance of more than x seconds."""
        rest = np.maximum((np.asarray(x, float) - self.loc) / self.scale, 0)
        if self.name == "lomax":
            return (1 + rest) ** -self.shape
        if self.name == "weibull_min":
            return np.exp(-(rest**self.shape))
        with np.errstate(divide="ignore"):
            return ndtr(-np.log(rest) / self.shape)

    def cdf(self, x: Any) -> Any:
        """Returns the chance of x seconds or less."""
        return 1 - self.sf(x)

    def ppf(self, q: Any) -> Any:
        """Returns quantiles, seconds."""
        q = np.asarray(q, float)
        if self.name == "lomax":
            rest = (1 - q) ** (-1 / self.shape) - 1
        elif self.name == "weibull_min":
            rest = (-np.log1p(-q)) ** (1 / self.shape)
        else:
            rest = np.exp(self.shape * ndtri(q))
        return self.loc + self.scale * rest

    def support(self) -> tuple[float, float]:
        """Returns the least and the largest value, seconds."""
        return self.loc, np.inf


def _heavy(number: int, tau: np.ndarray, draw: np.random.Generator) -> RandomWorld:
    """A part that is fixed, and a tail: Lomax (the mean may be infinite) or others."""
    name, letter, shape = [
        ("lomax", "c", float(draw.uniform(0.8, 3))),
        ("lognorm", "s", float(draw.uniform(0.5, 2.5))),
        ("weibull_min", "c", float(draw.uniform(0.3, 1))),
    ][int(draw.integers(3))]
    loc = (tau * draw.uniform(0, 1)).tolist()
    law = {"law": name, letter: shape, "loc": loc, "scale": tau.tolist()}
    laws = tuple(
        HeavyLaw(name, shape, at, by) for at, by in zip(loc, tau.tolist(), strict=True)
    )
    return RandomWorld("heavy", number, {"compute": law}, np.array(loc), draw, laws)
