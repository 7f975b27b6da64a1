"""The server's network over what parties send: `part` (options), `network`."""
