"""Noise of the server on the sum of a commit, and secure aggregation's cost."""
