"""Coordination protocols, one a file or folder: the order of reads and commits.

A protocol is one class: its options, its answers (`world.protocol.Protocol`), and
`play`, which starts its events on SimPy. None of them depends on an algorithm.
"""
