"""A study as one HTML page: its results, its simulated system, and its repetition.

`writing` fills the template (`templates`) with the closing tables, the claims and the
standard figures (`pictures`), how the runs ended (`runs`), and the method by the items
of a checklist: objectives, logic and data (`method`, `world`), and execution
(`execution`).
"""

from .writing import NAME, html, watch, write

__all__ = ["NAME", "html", "watch", "write"]
