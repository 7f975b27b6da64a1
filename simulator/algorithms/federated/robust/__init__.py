"""Servers that tolerate some enemies: robust aggregations, and filters of messages."""
