"""Graphs of workers: options, checks, the pairs that may average, and weights.

`base` says what every graph is; `kinds` holds them.
"""
