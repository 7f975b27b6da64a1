"""The constants of an objective in theoretical step sizes. No JAX."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, NamedTuple, ParamSpec, TypeVar

if TYPE_CHECKING:
    from .numerics import Estimates

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Known = TypeVar("Known", int, float | None, tuple[float, ...])


def _unmeasured() -> "Estimates":
    raise AssertionError("only constants of horizontal problems are measured")


class Constants(NamedTuple):
    """Facts on the problem for a rule, as `data`; None for unknown ones.

    A slow fact may be a function, which `measured` calls.

    Attributes:
        smoothness: L of the objective's gradient.
        strong_convexity: mu of the objective.
        num_clients: Clients or parties, K.
        of_parties: L_k of each party's block, of a vertical problem.
        commits_per_epoch: Commits of a pass over the data.
        num_first_layer: Weights of the model's first layer, of a horizontal problem.
        estimates: Measures the constants of a horizontal problem where a run starts.
    """

    smoothness: float | Callable[[], float] | None = None
    strong_convexity: float | None = None
    num_clients: int = 1
    of_parties: tuple[float, ...] | Callable[[], tuple[float, ...]] = ()
    commits_per_epoch: float = 1.0
    num_first_layer: int | Callable[[], int] = 0
    estimates: "Callable[[], Estimates]" = _unmeasured


def measured(constant: Known | Callable[[], Known]) -> Known:
    """Returns a constant, by calling it if it is a function."""
    return constant() if callable(constant) else constant


def remembered(
    method: Callable[Concatenate[T, P], R],
) -> Callable[Concatenate[T, P], R]:
    """Keeps the results of a method by its arguments, in the object itself."""

    @wraps(method)
    def remembering(self: T, *rest: P.args, **options: P.kwargs) -> R:
        results = vars(self).setdefault("_results", {})
        key = (method.__name__, rest, tuple(sorted(options.items())))
        if key not in results:
            results[key] = method(self, *rest, **options)
        return results[key]

    return remembering
