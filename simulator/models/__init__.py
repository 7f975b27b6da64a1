"""Models, one a folder: `part` has the options and counts weights, `network` computes.

- `linear`, `dense`, `cnn`, `deep_cnn`, `lstm`: models of clients, which hold all
  columns; each serves a party, too, whose outputs it sends (`party`).
- `mlp`: a model of parties alone, which hold some columns.
- `parts`: the base of all options, and shapes; `base`: the interfaces of networks.
- `flat_network`: what networks of one flat vector share; `flat`, `convolution`: pieces
  of several networks.

`part` modules do not import JAX. The public names are imported when they are used.
"""

from typing import TYPE_CHECKING

from ..lazy import attach

if TYPE_CHECKING:
    from .base import Classifier, Embedding
    from .linear.network import (
        LinearClassifier,
        LinearEmbedding,
    )
    from .parts import Model

__getattr__, __dir__, __all__ = attach(__name__, __file__)
