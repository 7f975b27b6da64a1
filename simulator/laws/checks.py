"""Finds laws that cannot be durations, before anything is simulated."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from simulator.config.base import PlacedError
from simulator.config.errors import ScenarioError
from simulator.config.expressions import Number, depends_on_client, per_client
from simulator.config.text import nearest, shown, suggestion
from simulator.laws.parts import (
    Constant,
    Markov,
    Mixture,
    Scaled,
    Scipy,
    Truncated,
    own_names,
)

USUAL_NAMES = {
    "binomial": "binom",
    "deterministic": "constant",
    "exponential": "expon",
    "fixed": "constant",
    "gaussian": "norm",
    "geometric": "geom",
    "lognormal": "lognorm",
    "negative_binomial": "nbinom",
    "normal": "norm",
    "weibull": "weibull_min",
}
"""What SciPy calls the laws that are usually named otherwise."""


def check_cycle(laws: Mapping[str, Any], num_clients: int) -> None:
    """Refuses laws of a cycle that are wrong, or with which time stands still.

    Args:
        laws: of one cycle, by the dotted key of the stage; later keys are named first.
        num_clients: how many clients their parameters are for.

    Raises:
        PlacedError: saying which parameter of which client, and what to do.
    """
    moves = np.zeros(num_clients, bool)
    for name, law in laws.items():
        moves |= check_law(law, num_clients, name)
    if not moves.all():
        *_, name = laws
        raise PlacedError(
            f"{name} must take time, got always 0 s for client "
            f"{int(moves.argmin()) + 1}; give {' or '.join(laws)} a law that is not "
            f"always 0",
            _keys(name),
        )


def check_law(law: Any, num_clients: int, name: str) -> np.ndarray:
    """Refuses a law whose durations may be negative or are no numbers.

    Args:
        law: a law's configuration; other packages' laws check themselves.
        num_clients: how many clients its parameters are for.
        name: dotted key of the stage, for messages.

    Returns:
        For each client, whether the stage can take time at all.

    Raises:
        PlacedError: saying which parameter of which client, and what to do.
    """
    if isinstance(law, Constant):
        if _drawn(law, num_clients, name):
            return np.ones(num_clients, bool)
        values = _column(law.value, num_clients, f"{name}.value")
        _refuse_negative(values, f"{name}.value")
        return _of_all([value > 0 for value in values], num_clients)
    if isinstance(law, Scipy):
        if _drawn(law, num_clients, name):
            distribution(law.law, name)
            return np.ones(num_clients, bool)
        return _check_scipy(law.model_dump_json(), num_clients, name)
    if isinstance(law, Mixture | Markov):
        parts = [
            check_law(part, num_clients, f"{name}.of.{number}")
            for number, part in enumerate(law.of)
        ]
        weights = law.weights if isinstance(law, Mixture) else [1.0] * len(parts)
        likely = [part for part, weight in zip(parts, weights, strict=True) if weight]
        return np.any(likely, axis=0)
    if isinstance(law, Truncated):
        distribution(law.of.law, f"{name}.of")
        return np.ones(num_clients, bool)
    if isinstance(law, Scaled):
        moves = check_law(law.of, num_clients, f"{name}.of")
        scale = _column(law.scale, num_clients, f"{name}.scale")
        shift = _column(law.shift, num_clients, f"{name}.shift")
        _refuse_negative(scale, f"{name}.scale")
        _refuse_negative(shift, f"{name}.shift")
        stretched, shifted = (
            _of_all([value > 0 for value in values], num_clients)
            for values in (scale, shift)
        )
        return moves & stretched | shifted
    return np.ones(num_clients, bool)


def check_parameter(
    parameter: Any, num_clients: int, name: str, *, above: bool = False
) -> None:
    """Refuses a client's own number that is negative; or zero, if it must be `above`.

    One that every client draws is checked as a law.

    Raises:
        PlacedError: saying which client's.
    """
    if isinstance(parameter, Scipy):
        check_law(parameter, num_clients, name)
        return
    for client, value in enumerate(_column(parameter, num_clients, name)):
        if value < 0 or (above and not value):
            raise PlacedError(
                f"{name} must be {'>' if above else '>='} 0, got {float(value):g} for "
                f"client {client + 1}; change it",
                _keys(name),
            )


def _drawn(law: Any, num_clients: int, name: str) -> bool:
    """Checks the laws of parameters that each client draws; returns if there are any.

    The values themselves are checked when they have been drawn.
    """
    own = {"value": law.value} if isinstance(law, Constant) else law.parameters
    placed = ("loc", "scale", "shift") if isinstance(law, Scipy) else ()
    own = own | {key: getattr(law, key) for key in placed}
    drawn = {key: value for key, value in own.items() if isinstance(value, Scipy)}
    for key, value in drawn.items():
        check_law(value, num_clients, f"{name}.{key}")
    return bool(drawn)


def _refuse_negative(values: list[Number], name: str) -> None:
    for client, value in enumerate(values):
        if value < 0:
            raise PlacedError(
                f"{name} must be >= 0, got {float(value):g} for client {client + 1}; "
                f"durations are not negative",
                _keys(name),
            )


def distribution(law: str, name: str) -> Any:
    """Returns SciPy's distribution of that name.

    Raises:
        PlacedError: there is none; naming the nearest.
    """
    import scipy.stats  # 1 s: only where a law needs it

    kinds = scipy.stats.rv_continuous | scipy.stats.rv_discrete
    found = getattr(scipy.stats, law, None)
    if isinstance(found, kinds):
        return found
    names = [n for n in dir(scipy.stats) if isinstance(getattr(scipy.stats, n), kinds)]
    near = USUAL_NAMES.get(law) or nearest(law, [*names, *own_names()])
    raise PlacedError(
        f"{name}.law must be {', '.join(sorted(own_names()))} or a distribution of "
        f"scipy.stats, got {shown(law)}; "
        + (f"did you mean {near!r}?" if near else "such as expon, gamma or lognorm"),
        _keys(f"{name}.law"),
    )


@lru_cache(maxsize=256)
def _check_scipy(text: str, num_clients: int, name: str) -> np.ndarray:
    law = Scipy.model_validate_json(text)
    known = distribution(law.law, name)
    names = [n for n in (known.shapes or "").split(", ") if n]
    check_names(law, names, name)
    quantities = {n: law.parameters[n] for n in names}
    quantities |= {"loc": law.loc, "scale": law.scale, "shift": law.shift}
    columns = {
        n: _column(quantity, num_clients, f"{name}.{n}")
        for n, quantity in quantities.items()
    }
    most = max(map(len, columns.values()))
    rows = list(zip(*(_all(values, most) for values in columns.values()), strict=True))
    moves: dict[tuple[Number, ...], bool] = {}
    # Clients who share their parameters are checked once, as the first of them.
    for client, row in enumerate(rows):
        if row not in moves:
            own = dict(zip(columns, row, strict=True))
            moves[row] = _check_row(known, own, name, f"for client {client + 1}")
    return _of_all([moves[row] for row in rows], num_clients)


def check_names(law: Scipy, names: list[str], name: str) -> None:
    """Refuses shape parameters that a distribution does not have, or lacks.

    Args:
        law: its configuration.
        names: of the distribution's shape parameters.
        name: dotted key of the law, for messages.

    Raises:
        PlacedError: naming the parameter.
    """
    for given in law.parameters:
        if given not in names:
            shapes = ", ".join(names) or "no shape parameters"
            near = nearest(given, [*names, "loc", "scale", "shift"])
            near = f"did you mean {near!r}?" if near else suggestion("", names)
            raise PlacedError(
                f"{name}.{given} is not a parameter of the law {law.law!r}, which has "
                f"{shapes} beside loc, scale and shift; "
                + (near if names else "remove it"),
                _keys(f"{name}.{given}"),
            )
    for needed in names:
        if needed not in law.parameters:
            raise PlacedError(
                f"{name}.{needed} is missing; the law {law.law!r} needs "
                f"{', '.join(names)}, as in scipy.stats.{law.law}; add it",
                _keys(f"{name}.{needed}"),
            )


def _check_row(known: Any, values: dict[str, Number], name: str, who: str) -> bool:
    """Checks a law for one client; returns whether it can take time.

    Args:
        known: SciPy's distribution.
        values: its shape parameters in SciPy's order, then loc, scale, shift.
        name: dotted key of the stage.
        who: names the client.
    """
    import scipy.stats

    law = known.name
    *shapes, loc, scale, shift = values.values()
    floats = [float(shape) for shape in shapes]
    if scale <= 0:
        raise PlacedError(
            f"{name}.scale must be > 0, got {float(scale):g} {who}; change it",
            _keys(f"{name}.scale"),
        )
    low, high = (float(end) for end in known.support(*floats))
    if np.isnan(low) or np.isnan(high):
        given = ", ".join(f"{n} = {v:g}" for n, v in zip(values, floats, strict=False))
        raise PlacedError(
            f"{name} must be a law that exists, but {law!r} does not for {given} "
            f"{who}; see scipy.stats.{law} for its parameters' ranges",
            _keys(name),
        )
    discrete = isinstance(known, scipy.stats.rv_discrete)
    # In fractions, where 0.3 - 0.1 - 0.2 is zero.
    standing: Any = low if np.isinf(low) else type(loc)(low)
    least = shift + (scale * (loc + standing) if discrete else loc + scale * standing)
    if least < 0:
        raise PlacedError(
            f"{name} must be a law of durations >= 0, got {law!r} that reaches down "
            f"to {float(least):g} s {who}; shift it, or take a law of positive values "
            f"such as lognorm, gamma or truncnorm",
            _keys(name),
        )
    return bool(least > 0 or known.sf(low, *floats) > 0)


def _column(quantity: Any, num_clients: int, name: str) -> list[Number]:
    """Returns the value of every client, or one if they are alike by what is written.

    A million clients are then checked like one.
    """
    try:
        values = per_client(quantity, num_clients, name)
        own = isinstance(quantity, tuple | list) or depends_on_client(quantity)
        return values if own else values[:1]
    except ScenarioError as error:
        raise PlacedError(str(error), _keys(name)) from None


def _all(values: list[Number], number: int) -> list[Number]:
    return values * number if len(values) == 1 else values


def _of_all(found: list[bool], num_clients: int) -> np.ndarray:
    """Returns what was found of every client, or of one of those alike, for each."""
    return np.broadcast_to(np.array(found, bool), num_clients).copy()


def _keys(name: str) -> tuple[str, ...]:
    return tuple(name.split("."))
