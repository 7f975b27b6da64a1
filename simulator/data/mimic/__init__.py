"""MIMIC-III: `part`, `record`, `features` of a stay, `hourly`, and two stand-ins."""
