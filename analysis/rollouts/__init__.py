"""Recorded worlds of samples: tables with closed forms, and figures.

`told` reads what `stalesim timeline` wrote, `tables` compares with the closed forms of
`analysis.theory.rollouts`, `figures` draws; `logs` writes a run as a real system would.
"""

from .figures import save_figures
from .logs import log_of
from .tables import compared, table_of, told

__all__ = ["compared", "log_of", "save_figures", "table_of", "told"]
