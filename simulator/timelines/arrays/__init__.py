"""Timelines of worlds without feedback, by arrays in place of an event loop.

Where nothing feeds back on who acts when, a client's times are cumulative sums of its
own durations, and a timeline is those of all clients in one order: versions are ranks.

- `blocks`: whether a world is free of feedback, or why not; where a run ends.
- `job_arrays`, `paths`: durations, what becomes of messages, and the jobs that each
  client does one after the other; where versions are kept.
- `events`: what happens in which order, also at one instant.
- `arrivals`, `lock_step`: what protocols make of jobs.

Tables are those of `simulator.timelines.simulated` bit for bit; registers may be
numbered otherwise.
"""
