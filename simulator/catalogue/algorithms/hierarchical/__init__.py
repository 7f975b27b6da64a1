"""Hierarchical averaging: models of edges, and of the cloud."""
