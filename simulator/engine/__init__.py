"""Runs a timeline through an algorithm: stepwise, compiled, or batched over runs."""
