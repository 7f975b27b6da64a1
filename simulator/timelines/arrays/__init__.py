"""Timelines of worlds without feedback, by arrays in place of an event loop.

Where nothing feeds back on who acts when, a client's times are cumulative sums of its
own durations, and a timeline is those of all clients in one order: versions are ranks.

- `blocks`: whether a world is free of feedback, or why not; where a run ends.
- `job_arrays`, `paths`: durations, outcomes of messages, and the successive jobs of
  each client; where versions are kept.
- `events`: the order of events, also at one instant.
- `arrivals`, `lock_step`: the protocols' use of jobs.

Tables are those of `simulator.timelines.simulated` bit for bit; registers may be
numbered otherwise.
"""
