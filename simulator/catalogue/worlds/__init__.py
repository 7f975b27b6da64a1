"""Worlds that were measured."""
