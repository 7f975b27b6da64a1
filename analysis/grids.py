"""A study as labelled arrays: an axis for variants, swept keys, replicates, looks."""

from typing import TYPE_CHECKING

from analysis.frames import Study, swept_columns, tidy
from simulator.config.errors import UserError

if TYPE_CHECKING:
    import xarray

OF_RUN = ("run", "group", "variant", "seed", "protocol")
"""Columns of `tidy` that say who a run is."""


def to_xarray(study: Study) -> "xarray.Dataset":
    """Returns everything that was evaluated in a study, as arrays with named axes.

    The axes are `variant`, every swept key, `replicate` and `evaluation`, the number of
    an evaluation in its run, from 0; where not every variant has a value of every key,
    `group` takes the place of the first ones. What had been counted by then (time,
    commits, bytes and so on, in the units of `simulator.trace.COLUMNS`) are arrays like
    the metrics, since runs may be evaluated at different times. Where there is no such
    evaluation, numbers are NaN.

    Raises:
        StudyError: No run has ended, or a table is damaged.
        UserError: xarray is not installed.
    """
    try:
        import xarray  # noqa: F401, of which pandas makes use
    except ImportError:
        raise UserError(
            "to_xarray must have xarray, which is not installed; pip install "
            '"stalesim[xarray]"'
        ) from None
    table = tidy(study)
    keys = list(dict.fromkeys(swept_columns(study).values()))
    whole = not table[keys].isna().any(axis=None)
    of_group = ["variant", *keys] if whole else ["group"]
    axes = [*of_group, "replicate", "evaluation"]
    table["evaluation"] = table.groupby("run").cumcount()
    values = [name for name in table if name not in (*axes, *OF_RUN, *keys)]
    found = table.set_index(axes)[values].to_xarray()
    return found.assign_attrs(name=study.manifest["name"])
