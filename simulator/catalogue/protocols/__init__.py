"""Coordination protocols, one a file or folder: the order of reads and commits.

A protocol is one class: its options, what it says of itself
(`world.protocol.Protocol`), and `play`, which starts its events on SimPy. None of them
knows an algorithm.
"""
