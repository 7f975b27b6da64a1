"""Metrics of a model: records, without JAX, and `functions`, which compute them.

Names of metrics are read with a scenario, and the records with them; a run imports the
functions. Metrics of one algorithm's models are in its folder.
"""
