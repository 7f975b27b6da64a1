"""Turns what an engine gives back of one run into the tables of the trace.

`run.Results` writes them as the records come in. What the rows say stands in `rows`,
what became of jobs in `jobs`, how stale each client's work is in `ages`, and what its
messages cost in `privacy`.
"""

from .run import Results

__all__ = ["Results"]
