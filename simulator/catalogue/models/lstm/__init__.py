"""LSTM: `part` (options), `layers`, `network` of clients and of parties."""
