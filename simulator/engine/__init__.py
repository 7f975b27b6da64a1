"""Execution of a timeline by an algorithm: stepwise, compiled, or batched over runs.

- `device`: the settings of JAX; `compiler`: a known fault of XLA, and its test.
- `processes`: copies of a process that has imported JAX, to execute runs in.
- `row_stream`: cuts of a timeline at evaluations, with the samples of each row, and
  their records.
- `execute`: the programs for the device; `host`: those with gradients of the user's.
- `runner`: one or several runs from start to end, record by record.
- `algorithm`, `kernel`: the base of every algorithm, and of the computation of its
  rows; `client_work`, `optimizers`, `step_rules`: pieces of many.
- `setup`, `of_run`, `simulation`: the facts of a run, from its scenario to its end;
  `results`: its tables.
"""
