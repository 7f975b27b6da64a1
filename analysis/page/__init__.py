"""A study as one HTML page: its results, what was simulated, and how to repeat it.

`writing` fills the template (`templates`) with the closing tables, the claims
and the standard figures (`pictures`), how the runs ended (`runs`), and the method by
the items of a checklist (`method`): design (`design`, `world`) and execution
(`execution`). `checklists` writes checklists alone, templates of the facts in `stated`.
"""

from .writing import NAME, html, write

__all__ = ["NAME", "html", "write"]
