"""Bidirectional LSTM: `part` (options), `network`."""
