"""MIMIC-III: `part` (options and files), `features` (of its variables)."""
