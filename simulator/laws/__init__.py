"""Laws of durations, one a file: options, checks, draws and closed forms.

`base` says what every law is, `parameters` holds what its parameters may be. A law is
one class, a `Law`, and the sampler that it makes. `distributions` has all of SciPy's,
`constant`, `empirical`, `mixture`, `markov`, `autoregressive`, `drifting`, `truncated`
and `scaled` the others.

Extras find laws of measured values by `fitting` (one law) and `choosing` (with memory,
of the models of `prediction`).
"""

from .autoregressive import Autoregressive
from .base import (
    AnyLaw,
    ClosedForm,
    Draws,
    Durations,
    DurationSampler,
    Law,
    Population,
)
from .constant import Constant
from .distributions import Parameter, Scipy
from .drifting import Drifting
from .empirical import Empirical
from .markov import Markov
from .mixture import Mixture
from .parameters import ClientValues
from .scaled import Scaled
from .truncated import Truncated

__all__ = [
    "AnyLaw",
    "Autoregressive",
    "ClientValues",
    "ClosedForm",
    "Constant",
    "Draws",
    "Drifting",
    "DurationSampler",
    "Durations",
    "Empirical",
    "Law",
    "Markov",
    "Mixture",
    "Parameter",
    "Population",
    "Scaled",
    "Scipy",
    "Truncated",
]
