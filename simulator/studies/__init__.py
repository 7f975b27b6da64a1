"""Many runs as one study: planned, spread over processes, written, resumed.

`planning` decides which runs are executed together; `running` executes a study: starts,
continues or extends it, by `staged` until its claims are decided; `study_folder` keeps
what is finished; `executors` takes tasks to processes of this machine, which import
`preloaded`, or to others from an extra; `sizes` are counted beforehand; `existing`
recognises or removes a study; `tuning` searches for the best values of entries;
`comparing` tunes every variant before it is judged.
"""

from typing import TYPE_CHECKING

from ..parts.lazy import attach

if TYPE_CHECKING:
    from .comparing import compare
    from .planning import Task, plan, planned
    from .running import resume, simulate
    from .tuning import tune

__getattr__, __dir__, __all__ = attach(__name__, __file__)
