"""Execution of a timeline by an algorithm: stepwise, compiled, or batched over runs.

- `device`: the settings of JAX; `compiler`: a known fault of XLA, and its test.
- `feed`: cuts of a timeline at evaluations, with the samples of each row.
- `execute`: the programs for the device; `drive`: one or several runs from start to
  end.
"""
