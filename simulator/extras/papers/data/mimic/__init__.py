"""MIMIC-III: `part` (options and files), `features` (statistics), `hourly`."""
