"""Models of a user's own: `part` (options), `named`, `functions`, `network`, ..."""
