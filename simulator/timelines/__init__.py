"""Timelines of runs, chunk by chunk, wherever they come from.

- `simulated`: a world, a protocol and a seed, simulated by SimPy.
- `replayed`: read from the folder of a recording.
- `cached`: simulated once for all runs of a study that share it.
- `saved`: written into a folder; `imported` (with `logs`, `logged`): made from the log
  of a real system.
- `base`: what all of them say of themselves.
"""
