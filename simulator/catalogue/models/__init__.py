"""Models, one a folder: `part` has the options and counts weights, `network` computes.

`cnn` and `lstm` are models of clients, which hold all columns; each serves
a party, too, whose outputs it sends. `mlp` is one of parties alone, which hold some
columns. `part` modules do not import JAX.
"""
