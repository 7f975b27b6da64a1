"""Loaders of data sets: those that ship, those that a user has, and stand-ins."""
