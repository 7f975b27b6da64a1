"""What to simulate: the scenario, read from YAML or built in Python.

Nothing in here imports JAX or pandas.
"""
