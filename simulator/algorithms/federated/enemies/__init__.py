"""Clients that send something else than they should: one attack a module."""
