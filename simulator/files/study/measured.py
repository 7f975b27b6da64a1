"""A manifest's entries on a study's metrics, so that it is read without plug-ins."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...parts.json_text import Tree
from ...parts.metrics import Metric, find, metric

FACTS = ("unit", "higher_is_better", "label", "logarithmic", "meaning")
"""Facts of a metric that are kept as they are; `bounds` too, null where infinite."""


def facts_of(
    names: Sequence[str], problems: Iterable[Mapping[str, object]]
) -> dict[str, Tree]:
    """Returns a manifest's entries on some metrics, by name."""
    all_of_them = list(problems)
    found = {name: metric(name).of_problems(all_of_them) for name in names}
    return {
        name: {key: getattr(each, key) for key in FACTS} | {"bounds": _bounds(each)}
        for name, each in found.items()
    }


def metric_of_study(manifest: Mapping[str, Any], name: str) -> Metric | None:
    """Returns a metric in the units of a study; None if it is not known.

    A metric of a plug-in that is not registered here is known by the manifest.
    """
    found = find(name)
    if found is not None:
        scenarios = [run.get("scenario") or {} for run in manifest["runs"]]
        problems = [scenario.get("problem") or {} for scenario in scenarios]
        return found.of_problems(problems)
    return metrics_of_manifest(manifest).get(name)


def metrics_of_manifest(manifest: Mapping[str, Any]) -> dict[str, Metric]:
    """Returns the metrics of a manifest, by name."""
    told_of = manifest.get("metrics", {})
    return {name: _as_written(name, facts) for name, facts in told_of.items()}


def _as_written(name: str, facts: Tree) -> Metric:
    kept = {key: facts[key] for key in FACTS}
    if facts["bounds"] is not None:
        least, most = facts["bounds"]
        kept["bounds"] = (
            -math.inf if least is None else float(least),
            math.inf if most is None else float(most),
        )
    return Metric(name, "", **kept)


def _bounds(of: Metric) -> list[float | None] | None:
    if of.bounds is None:
        return None
    return [end if math.isfinite(end) else None for end in of.bounds]
