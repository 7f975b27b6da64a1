"""Many runs as one study: planned, spread over processes, written, resumed.

`planning` decides which runs are executed together; `running` executes a study, begins,
continues or extends it, by `staged` until its claims are decided; `folder` keeps what
is finished; `work` is what one process does; `spread` takes it to processes of this
machine, or of a Dask cluster; `memory` says beforehand what it will take.
"""

from simulator.studies.planning import Task, plan, planned
from simulator.studies.running import resume, simulate, sweep

__all__ = ["Task", "plan", "planned", "resume", "simulate", "sweep"]
