"""What every model is, and those that others are made of: `linear`, `dense`, `server`.

- `parts`: the base of all options, and shapes; `base`: the interfaces of networks.
- `flat`: flat vectors, and what networks of one share; `convolution`: pieces of
  several; `party`: a model of clients as that of a party.
- `python`: models of the user's own.

`part` modules do not import JAX.
"""
