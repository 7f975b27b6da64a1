"""Turns what an engine gives back of one run into the tables of the trace.

`run.Results` writes them as the records come in, with what messages cost of privacy.
`rows` has what rows say, what became of jobs, and how stale each client's work is.
"""

from .run import Results

__all__ = ["Results"]
