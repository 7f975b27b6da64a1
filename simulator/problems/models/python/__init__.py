"""Models of a user's own: `part` (options), `functions`, `libraries`, `network`."""
