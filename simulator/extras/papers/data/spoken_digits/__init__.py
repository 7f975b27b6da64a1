"""Spoken digits: `part` (options, files), `recordings` (format, spectrum)."""
