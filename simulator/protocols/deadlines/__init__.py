"""Deadlines of rounds that follow from arrivals: no numerics are needed.

- `base`: what a deadline learns of rounds, and decides.
- `quantile`: a quantile of recent responses.
- `spread`: median and spread of a round's first responses.
"""
