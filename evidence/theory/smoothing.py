"""What noise inside an embedding does to the objective's smoothness and value.

Constants are given as the paper prints them or `tight`: with the exact mean norm of a
Gaussian, and with the width that equation 11b gives the uniform noise (V-23).
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from scipy import special

from stalesim.simulator.parts.errors import UserError

Variant = Literal["printed", "tight"]


class Smoothing(NamedTuple):
    """Lipschitz constants of the smoothed embedding's gradients, layer by layer.

    Attributes:
        bias: L^h_{b_l} for l = 1..L.
        weight: L^h_{w_l} for l = 1..L.
    """

    bias: tuple[float, ...]
    weight: tuple[float, ...]

    @property
    def total(self) -> float:
        """The sum over layers that enters the objective's smoothness."""
        return math.fsum(self.bias + self.weight)


def gaussian_neuron(
    lipschitz: float, width: int, std: float, variant: Variant = "printed"
) -> float:
    """Computes the gradient's Lipschitz constant of a neuron under Gaussian noise.

    Printed: lipschitz * width / std. Tight: lipschitz * E||Z|| / std^2, which is about
    lipschitz * sqrt(width) / std.

    Args:
        lipschitz: Lipschitz constant of the activation, >= 0.
        width: number of components of the noise, >= 1.
        std: standard deviation of a component, > 0.
        variant: which of the two.

    Source: VAFL, Lemma 3; V-23.
    """
    if variant == "printed":
        return lipschitz * width / std
    half = float(special.gammaln((width + 1) / 2) - special.gammaln(width / 2))
    return lipschitz * math.sqrt(2) * math.exp(half) / std


def uniform_neuron(
    lipschitz: float, width: int, c: float, variant: Variant = "printed"
) -> float:
    """Computes the gradient's Lipschitz constant of a neuron under uniform noise.

    Printed: 2 sqrt(width) lipschitz / c, as for noise in [-c/2, c/2]. Tight: the same
    with the interval of equation 11b, [-sqrt(3) c, sqrt(3) c].

    Args:
        lipschitz: Lipschitz constant of the activation, >= 0.
        width: number of components of the noise, >= 1.
        c: the noise's level c_l, > 0.
        variant: which of the two.

    Source: VAFL, Lemma 3 and equation 13; V-23.
    """
    interval = c if variant == "printed" else 2 * math.sqrt(3) * c
    return 2 * math.sqrt(width) * lipschitz / interval


def theorem5(
    weight_norms: Sequence[float],
    input_norms: Sequence[float],
    widths: Sequence[int],
    c: float,
    hidden_c: Sequence[float],
    lipschitz: float = 1.0,
    variant: Variant = "printed",
) -> Smoothing:
    """Computes how Lipschitz the gradients of a perturbed embedding are.

    The bias constants bound what they claim to. A weight's constant holds the mean norm
    of the layer's input where its proof needs the mean square, so it may be exceeded
    where inputs are larger than 1.

    Args:
        weight_norms: ||w_l|| for l = 1..L, >= 0.
        input_norms: E||u_{l-1}|| for l = 1..L; the first is the input's.
        widths: d of each layer, >= 1.
        c: standard deviation of the last layer's Gaussian noise, > 0.
        hidden_c: c_l of the L - 1 other layers' uniform noise, > 0.
        lipschitz: Lipschitz constant of the activation.
        variant: as printed, or with the tight constants of single neurons.

    Raises:
        UserError: the lists' lengths do not agree, or a noise level is not positive.

    Source: VAFL, Theorem 5, equation 13; V-23.
    """
    layers = len(weight_norms)
    lengths = (len(input_norms), len(widths), len(hidden_c))
    if not layers or lengths != (layers, layers, layers - 1):
        raise UserError(
            f"input_norms, widths and hidden_c must have {layers}, {layers} and "
            f"{layers - 1} entries, got {', '.join(map(str, lengths))}; "
            "the last layer's noise is c"
        )
    if not all(level > 0 for level in (c, *hidden_c)):
        raise UserError(
            f"noise levels must be > 0, got {(*hidden_c, c)}; "
            "without noise the embedding is not smoothed"
        )
    bias = [gaussian_neuron(lipschitz, widths[-1], c, variant)]
    slope = 1.0  # of what follows layer l, in its output
    for layer in reversed(range(layers - 1)):
        norm = weight_norms[layer + 1]
        slope *= lipschitz * norm
        neuron = uniform_neuron(lipschitz, widths[layer], hidden_c[layer], variant)
        bias.append(bias[-1] * norm * lipschitz**2 + slope * neuron)
    bias.reverse()
    weight = tuple(u * b for u, b in zip(input_norms, bias, strict=True))
    return Smoothing(tuple(bias), weight)


def objective_smoothness(
    smoothing: Smoothing,
    loss_smoothness: float,
    embedding_lipschitz: float,
    loss_lipschitz: float,
    regulariser_smoothness: float = 0.0,
) -> float:
    """Computes the smoothness of the perturbed objective in one client's parameters.

    Args:
        smoothing: constants of the client's embedding.
        loss_smoothness: of the loss in the embedding.
        embedding_lipschitz: Lipschitz constant of the embedding in its parameters.
        loss_lipschitz: Lipschitz constant of the loss in the embedding.
        regulariser_smoothness: of r.

    Source: VAFL, Theorem 5, equation 13.
    """
    return (
        loss_smoothness * embedding_lipschitz**2
        + loss_lipschitz * smoothing.total
        + regulariser_smoothness
    )


def bias_bound(
    num_clients: int,
    weight_norms: Sequence[float],
    lipschitz: Sequence[float],
    c: float,
    hidden_c: Sequence[float],
) -> float:
    """Computes the printed bound of |F_c - F|; to report only, never to assert.

    It lacks the loss's Lipschitz constant and the layers' widths (V-24).

    Args:
        num_clients: M.
        weight_norms: ||w_l|| for l = 1..L.
        lipschitz: Lipschitz constants of the L activations.
        c: standard deviation of the last layer's noise.
        hidden_c: c_l of the other layers.

    Source: VAFL, appendix E.2, as printed.
    """
    product, total = 1.0, 0.0
    for norm, constant in zip(reversed(weight_norms), reversed(lipschitz), strict=True):
        product *= (constant * norm) ** 2
        total += product
    noise = math.fsum(level**2 for level in (*hidden_c, c))
    return num_clients * math.sqrt(total * noise)
