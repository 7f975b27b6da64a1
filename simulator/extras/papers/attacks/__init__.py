"""Gradient inversion: a curious server's reconstruction of a client's samples.

`linear` inverts messages of linear models in closed form, `matching` those of the
convolutional network by search, with `relaxation`; `quality` compares images, `report`
makes tables and figures. Nothing is re-exported: only `matching` and `relaxation` need
JAX.
"""
