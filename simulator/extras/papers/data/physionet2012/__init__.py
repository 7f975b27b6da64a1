"""PhysioNet 2012: `part` (options and files), `stays` (their format)."""
