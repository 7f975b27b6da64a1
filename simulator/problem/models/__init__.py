"""The base of every model, and of those made of others: `linear`, `dense`, `server`.

- `parts`: the base of all options, and shapes; `base`: the interfaces of networks.
- `flat`: flat vectors, and the common part of networks of one; `convolution`: pieces of
  several; `party`: a model of clients as a party's.
- `python`: models of the user's own.

`part` modules do not import JAX.
"""
