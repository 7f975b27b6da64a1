"""Results that runs of one process share: data sets and problems by their content."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from .. import inputs
from ..config.base import Config
from ..data.base import Dataset, features_in
from ..storage import files

MOST_REMEMBERED = 8
"""Data sets and problems that a process keeps."""


def cached_by_content(build: Callable[..., Any]) -> Callable[..., Any]:
    """Keeps the last few results of a function of a configuration, by its content.

    The content of the files that it names or finds belongs to that.
    """
    results: dict[Any, Any] = {}

    @wraps(build)
    def remembering(config: Config, *rest: Any, **options: Any) -> Any:
        content = type(config).__name__, config.model_dump_json()
        read = inputs.state(config)
        key = (*content, read, rest, tuple(sorted(options.items())))
        if key not in results:
            while len(results) >= MOST_REMEMBERED:
                results.pop(next(iter(results)))
            results[key] = build(config, *rest, **options)
        return results[key]

    return remembering


@cached_by_content
def dataset(config: Any, precision: str = "float32") -> Dataset:
    """Returns the data of a configuration, once for all runs that share it.

    Args:
        config: Configuration of the data set.
        precision: Type in which features are kept, `float32` or `float64`.

    Raises:
        DataError: a file is missing, damaged, or has changed since the study started.
    """
    with files.noted() as read, features_in(precision):
        data = config.make()
    inputs.confirm(config, "problem.data", read)
    return data
