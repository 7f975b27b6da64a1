"""LEAF's sets: `format` (files and what all have in common), then one a file."""
