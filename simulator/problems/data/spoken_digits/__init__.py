"""Spoken digits: `part` (options), `recordings`, `spectrum` of a frame, `record`."""
