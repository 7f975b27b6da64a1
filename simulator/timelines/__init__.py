"""Timelines of runs, chunk by chunk, wherever they come from.

- `simulated`: a world, a protocol and a seed, simulated by SimPy.
- `replayed`: read from the folder of a recording.
- `cached`: simulated once for all runs of a study that share it.
- `logs`: tables of what a real system did, which extras read.
- `base`: what all of them say of themselves.
"""
