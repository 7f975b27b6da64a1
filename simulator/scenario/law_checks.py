"""Finds laws that cannot be durations, before anything is simulated."""

import math
from functools import lru_cache
from typing import Any

from simulator.scenario.errors import ScenarioError
from simulator.scenario.expressions import per_client
from simulator.scenario.laws import Constant, Scipy


def check_law(law: Any, num_clients: int, name: str) -> None:
    """Refuses a law whose durations may be negative or are no numbers.

    Args:
        law: a law's configuration; other packages' laws check themselves.
        num_clients: how many clients its parameters are for.
        name: of the stage, for messages.

    Raises:
        ScenarioError: saying which parameter of which client, and what to do.
    """
    if isinstance(law, Constant):
        for client, value in enumerate(
            per_client(law.value, num_clients, f"{name}.value")
        ):
            if value < 0:
                raise ScenarioError(
                    f"{name}.value must be >= 0, got {float(value):g} for client "
                    f"{client + 1}"
                )
    elif isinstance(law, Scipy):
        _check_scipy(law.model_dump_json(), num_clients, name)


def advances(law: Any, num_clients: int, name: str) -> list[bool]:
    """Says for each client whether a stage can take time at all."""
    if isinstance(law, Constant):
        return [v > 0 for v in per_client(law.value, num_clients, name)]
    if not isinstance(law, Scipy):
        return [law is not None] * num_clients
    return [_upper(law, num_clients, name, m) > 0 for m in range(num_clients)]


def _upper(law: Scipy, num_clients: int, name: str, client: int) -> float:
    shift = float(per_client(law.shift, num_clients, f"{name}.shift")[client])
    scale = float(per_client(law.scale, num_clients, f"{name}.scale")[client])
    shapes, discrete = _shapes(law, num_clients, name, client)
    loc = float(per_client(law.loc, num_clients, f"{name}.loc")[client])
    top = _distribution(law.law, name).support(*shapes)[1]
    if discrete and law.law == "poisson" and shapes == (0.0,):
        top = 0.0
    return shift + (scale * (loc + top) if discrete else loc + scale * top)


def _distribution(law: str, name: str) -> Any:
    import scipy.stats

    from simulator.scenario.messages import suggestion

    found = getattr(scipy.stats, law, None)
    kinds = scipy.stats.rv_continuous | scipy.stats.rv_discrete
    if not isinstance(found, kinds):
        known = [
            n for n in dir(scipy.stats) if isinstance(getattr(scipy.stats, n), kinds)
        ]
        near = suggestion(law, [*known, "constant"])
        near = near if near.startswith("did") else "see scipy.stats for the names"
        raise ScenarioError(
            f"{name}.law must be constant or a distribution of scipy.stats, got {law!r}; {near}"
        )
    return found


def _shapes(
    law: Scipy, num_clients: int, name: str, client: int
) -> tuple[tuple[float, ...], bool]:
    import scipy.stats

    distribution = _distribution(law.law, name)
    names = [n for n in (distribution.shapes or "").split(", ") if n]
    values = tuple(
        float(per_client(law.parameters[n], num_clients, f"{name}.{n}")[client])
        for n in names
    )
    return values, isinstance(distribution, scipy.stats.rv_discrete)


@lru_cache(maxsize=256)
def _check_scipy(text: str, num_clients: int, name: str) -> None:
    from simulator.scenario.messages import suggestion

    law = Scipy.model_validate_json(text)
    distribution = _distribution(law.law, name)
    names = [n for n in (distribution.shapes or "").split(", ") if n]
    for given in law.parameters:
        if given not in names:
            near = suggestion(given, [*names, "loc", "scale", "shift"])
            raise ScenarioError(
                f"{name}.{given} is not a parameter of the law {law.law!r}; {near}"
            )
    for needed in names:
        if needed not in law.parameters:
            raise ScenarioError(
                f"{name}.{needed} is missing; the law {law.law!r} needs it"
            )
    everyone = range(num_clients)
    same = not any(isinstance(q, str | tuple) for q in _quantities(law))
    for client in everyone if not same else range(1):
        _check_client(law, num_clients, name, client)


def _quantities(law: Scipy) -> list[Any]:
    return [law.loc, law.scale, law.shift, *law.parameters.values()]


def _check_client(law: Scipy, num_clients: int, name: str, client: int) -> None:
    shapes, discrete = _shapes(law, num_clients, name, client)
    loc, scale, shift = (
        float(per_client(q, num_clients, f"{name}.{n}")[client])
        for q, n in ((law.loc, "loc"), (law.scale, "scale"), (law.shift, "shift"))
    )
    who = f"for client {client + 1}"
    if scale <= 0:
        raise ScenarioError(f"{name}.scale must be > 0, got {scale:g} {who}")
    distribution = _distribution(law.law, name)
    low, high = (float(end) for end in distribution.support(*shapes))
    if math.isnan(low) or math.isnan(high):
        given = ", ".join(
            f"{n} = {v:g}" for n, v in zip(law.parameters, shapes, strict=True)
        )
        raise ScenarioError(
            f"{name}: the law {law.law!r} has no such distribution ({given} {who}); "
            f"see scipy.stats.{law.law}"
        )
    least = shift + (scale * (loc + low) if discrete else loc + scale * low)
    if least < 0:
        raise ScenarioError(
            f"{name} must be a law of durations >= 0, but {law.law!r} goes down to "
            f"{least:g} s {who}; shift it, or take a law of positive values such as "
            f"lognorm or gamma"
        )
