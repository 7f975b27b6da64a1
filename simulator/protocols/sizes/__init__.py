"""Sizes of the server's buffer that follow from what it has received.

- `base`: what a rule knows of a run, and decides.
- `staleness`: as many as keep the staleness at a target; no numerics are needed.
- `norm_test`: as many as the noise of their gradients asks for.
"""
