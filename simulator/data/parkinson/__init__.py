"""Parkinson's speech features: `part` (options and files), `record`, `standin`."""
