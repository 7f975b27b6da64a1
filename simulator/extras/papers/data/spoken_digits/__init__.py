"""Spoken digits: `part` (options, files), `recordings` (their format), `spectrum`."""
