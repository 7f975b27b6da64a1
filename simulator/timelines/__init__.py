"""Timelines of runs, chunk by chunk, wherever they come from.

- `simulated`: a world, a protocol and a seed, simulated by SimPy.
- `replayed`: read from the folder of a recording.
- `cached`: simulated once for all runs of a study that share it.
- `logs`: tables of a real system's events, which extras read.
- `base`: the common interface of all of them.
"""
