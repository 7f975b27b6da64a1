"""Network of one hidden layer: `part` (options), `network`."""
