"""PhysioNet 2012: `part` (options), `stays`, `statistics`, `hourly`, `record`."""
