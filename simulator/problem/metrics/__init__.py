"""Metrics of a model: a file has the records, and next to each its function.

Names of metrics are read with a scenario, and the records with them: a function imports
JAX when a run calls it, and annotates arrays as `Any`, for `jaxtyping.Array` imports
JAX at once. Metrics of one algorithm's models stand in its folder.
"""
