"""A language model: `part` (options), `network`."""
