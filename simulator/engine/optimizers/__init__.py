"""Optimisers at the server, at workers and at parties, all by one mechanism.

- `part`: their options, and optax's optimisers and schedules by name; no JAX here.
- `arrays`: the arrays in the flat vectors that they move, and the base of every rule.
- `rule`: the direction of a gradient, and tables of workers' states.
"""
