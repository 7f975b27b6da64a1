"""Collect: contributions taken at one model are gathered, then applied together."""
