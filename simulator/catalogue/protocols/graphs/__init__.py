"""Graphs of workers: options, checks, the pairs that may average, and weights.

`base` defines the interface of every graph; `kinds` holds them.
"""
