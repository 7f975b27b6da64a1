"""Many runs as one study: planned, spread over processes, written, resumed.

`planning` decides which runs are executed together; `running` executes a study: starts,
continues or extends it, by `staged` until its claims are decided; `study_folder` keeps
what is finished, by the manifest's `entries` and at `paths`; `worker` is the work of
one process; `executors` takes it to processes of this machine, which import
`preloaded`, or to others that an extra gives;
`sizes` are counted beforehand, `existing` recognises or removes a study; `tuning`
searches the best values of entries; `comparing` tunes every variant before it is
judged.
"""

from .comparing import compare
from .planning import Task, plan, planned
from .running import resume, simulate, sweep
from .tuning import tune

__all__ = ["Task", "compare", "plan", "planned", "resume", "simulate", "sweep", "tune"]
