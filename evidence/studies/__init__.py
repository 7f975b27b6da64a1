"""Studies that are programs of their own; each writes tables to `evidence/results`."""
