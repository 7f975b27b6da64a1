"""The server's network over the parties' messages: `part` (options), `network`."""
