"""Elastic averaging: clients with models of their own, drawn to a common centre."""
