"""What every model is, and those that others are made of: `linear`, `dense`, `server`.

- `parts`: the base of all options, and shapes; `base`: the interfaces of networks.
- `flat_network`: what networks of one flat vector share; `flat`, `convolution`: pieces
  of several networks; `party`: a model of clients as that of a party.
- `python`: models of the user's own.

`part` modules do not import JAX.
"""
