"""Recorded worlds of samples: tables with closed forms, and figures.

`tables` compares what `stalesim timeline` wrote with the closed forms of `theory`,
`figures` draws it; `logs` writes a run as the log of a real system.
"""

from .figures import save_figures
from .logs import log_of
from .tables import compared, table_of, told

__all__ = ["compared", "log_of", "save_figures", "table_of", "told"]
