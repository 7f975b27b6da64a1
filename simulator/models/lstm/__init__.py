"""LSTM: `part` (options), `layers`, `network` of clients, `party` of parties."""
