"""Models of a user's own: `part` (options), `functions`, `network`, ..."""
