"""Laws of durations, one a file: options, checks, draws and closed forms.

`base` says what every law is, `parameters` holds what its parameters may be. A law is
one class, a `Law`, and the sampler that it makes. `distributions` has all of SciPy's,
`constant`, `empirical`, `mixture`, `markov`, `truncated` and `scaled` the others.
"""

from simulator.laws.base import (
    AnyLaw,
    ClosedForm,
    Draws,
    Durations,
    DurationSampler,
    Law,
    Population,
)
from simulator.laws.constant import Constant
from simulator.laws.distributions import Parameter, Scipy
from simulator.laws.empirical import Empirical
from simulator.laws.markov import Markov
from simulator.laws.mixture import Mixture
from simulator.laws.parameters import ClientValues
from simulator.laws.scaled import Scaled
from simulator.laws.truncated import Truncated

__all__ = [
    "AnyLaw",
    "ClientValues",
    "ClosedForm",
    "Constant",
    "Draws",
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
