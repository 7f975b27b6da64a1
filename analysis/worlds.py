"""Which tables and figures show a world that was played alone."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from .rollouts import report as of_samples
from .timelines import report as of_clients

REPORTS = {"samples": of_samples, "timeline": of_clients}
"""Modules by the `kind` of manifests."""


def report_of(manifest: Mapping[str, Any]) -> ModuleType:
    """Returns what has `tables`, `standard`, `caption`, `save` ... of a world.

    Args:
        manifest: Of a world without numerics.
    """
    return REPORTS[manifest["kind"]]
