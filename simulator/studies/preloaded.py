"""Imports for runs, made once for all processes of a study.

Nothing here may compute with JAX: the threads that it starts are not copied.
"""

import pandas as pd
import pyarrow.parquet as pq

from ..engine import simulation
from ..parts import catalogue
from . import executors

__all__ = ["PARTS", "executors", "pd", "pq", "simulation"]

PARTS = tuple(map(catalogue.own, catalogue.BASES))
"""Our parts; which plug-ins there are depends on the study."""
