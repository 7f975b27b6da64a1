"""Clusters: one study shared among processes of several machines.

For users with more machines than one. `dask` lets the workers of a Dask cluster execute
the runs of a command; `takers` are workers without a scheduler: any number of processes
share a study by its folder alone, with `claims` of its tasks. `merging` joins folders
of one study. `docs/extras/clusters.md` compares them.
"""

from typing import TYPE_CHECKING

from ...parts.attached import Extra
from ...parts.lazy import attach

if TYPE_CHECKING:
    from .dask import Cluster
    from .merging import merge

EXTRA = Extra(commands=f"{__name__}.commands")

__getattr__, __dir__, __all__ = attach(__name__, __file__)
