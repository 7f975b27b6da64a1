"""What only the four papers need: data sets, networks, and inversion of gradients.

For who repeats VAFL, FedBCD, MAPA or A(DP)2SGD (docs/extras/papers.md).

- `data`: their sets, which read files of the data folder.
- `cifar_net`: nine networks for CIFAR-10; `view_cnn`: a party's part of an image.
- `attacks`: images recovered from messages; `commands` has `stalesim attack`.
"""

from ...parts.attached import Extra

EXTRA = Extra(commands=f"{__name__}.commands", outputs=("attack",))
