"""Hierarchy: clients average at their edge, and edges at the cloud."""
