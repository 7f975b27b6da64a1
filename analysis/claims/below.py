"""Claims that the mean of a metric over a run obeys a bound."""

from ...simulator.claims.below import Below
from .. import bounds
from ..curves import run_means
from ..statistics import ROUNDING
from .final_values import alone
from .measured import Frame, Measured
from .slope import run_mean
from .verdict import Evidence, Judged, judged


def quantities(claim: Below) -> dict[str, Frame]:
    """Returns the means of runs over their commits."""
    metric = claim.metric
    return {run_mean(metric): lambda study: run_means(study, metric)}


def judge(measured: Measured, claim: Below, name: str) -> Judged:
    """Judges whether the mean over a run is at most `bound`, in the typical run.

    The claim holds if the median of the runs' means is below the bound, and does not
    hold if it is above. A run that diverged has no less than the worst value that was
    seen.
    """
    metric, border = claim.metric, claim.bound
    sample, said = alone(measured.of(run_mean(metric), name), name)
    slack = ROUNDING * (1 + abs(border))  # a mean may be the bound
    evidence = Evidence(
        bounds.below(sample, border + slack), bounds.above(sample, border + slack)
    )
    to = f": mean {metric} at most {border:g}"
    why = f"mean over the run against {border:g}{said}"
    return judged(to, f"mean {metric}", sample, evidence, why)
