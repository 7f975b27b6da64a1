"""MIMIC-III: `part` (options and files), `features` of a stay, `record`, `standin`."""
