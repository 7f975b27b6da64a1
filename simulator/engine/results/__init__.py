"""Turns an engine's records of one run into the tables of the trace.

`run.Results` writes them as the records come in, with the privacy cost of messages.
`rows` has the content of rows, the outcomes of jobs, and the staleness of clients.
"""

from .run import Results

__all__ = ["Results"]
