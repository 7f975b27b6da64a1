"""MNIST: `part` (options and files), `record` (what is published)."""
