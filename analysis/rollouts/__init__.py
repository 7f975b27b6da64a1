"""Recorded worlds of samples: tables with closed forms, and figures.

`tables` compares what `stalesim timeline` wrote with the closed forms of `theory`,
`figures` draws it, and `report` has both for every command; `logs` writes a run as the
log of a real system.
"""

from .logs import log_of
from .report import save, standard
from .tables import closing, compared, fitted

__all__ = ["closing", "compared", "fitted", "log_of", "save", "standard"]
