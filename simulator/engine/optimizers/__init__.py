"""Optimisers at the server, at workers and at parties, all by one mechanism.

- `part`: their options; no JAX here.
- `known`: optax's optimisers and schedules by name, and what their options may be.
- `rule`: what makes a direction of a gradient, and tables of workers' states.
"""
