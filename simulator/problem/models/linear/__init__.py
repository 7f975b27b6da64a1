"""Linear model: `part` (options), `network`."""
