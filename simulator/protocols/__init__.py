"""Coordination protocols: who talks to whom when, each written on SimPy in one file.

A protocol's `play(config, world, recorder)` starts its events; `play.Played` runs them
and gives the timeline in chunks. No protocol knows an algorithm.
"""
