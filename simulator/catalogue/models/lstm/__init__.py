"""LSTM: `part` (options), `network` of clients and of parties."""
