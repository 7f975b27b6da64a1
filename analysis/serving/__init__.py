"""A study in a browser while it is run: one page on this machine's own address.

`analysis.watching` reads the folder, also while it is being written; `words` says how
far the study is; `pictures` draws what is there so far; `pieces` makes HTML of both and
keeps it until something changes; `server` answers a browser. Nothing is written.
"""

from .server import DEFAULT_PORT, PageServer

__all__ = ["DEFAULT_PORT", "PageServer"]
