"""What parties send, and the server's network over it: `part` (options), `network`."""
