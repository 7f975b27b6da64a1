"""A study as one HTML page: its results, what was simulated, and how to repeat it.

`writing` fills the template (`templates`) with the closing tables, the claims
and the standard figures (`pictures`), how the runs ended (`runs`), and the method by
the items of a checklist (`method`): design (`design`, `world`) and execution
(`execution`). `watching` writes the page of a running study again and again.
"""

from .watching import watch
from .writing import NAME, html, write

__all__ = ["NAME", "html", "watch", "write"]
