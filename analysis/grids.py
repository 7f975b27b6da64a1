"""A study as labelled arrays: an axis for variants, swept keys, replicates, looks."""

from typing import TYPE_CHECKING

from ..simulator.files.study import COLUMNS, metric_of_study
from ..simulator.parts.extras import extra
from .frames import Study, follow, swept_axes, swept_columns, tidy

if TYPE_CHECKING:
    import xarray

OF_RUN = ("run", "group", "variant", "seed", "protocol")
"""Columns of `tidy` that say who a run is."""


def to_xarray(study: Study) -> "xarray.Dataset":
    """Returns everything that was evaluated in a study, as arrays with named axes.

    The axes are `variant`, every swept key, `replicate` and `evaluation`, the number of
    an evaluation in its run, from 0; keys that are zipped are one axis, called like the
    first, along which the others are coordinates. Where not every variant has a value
    of every key, `group` takes the place of the first ones. What had been counted by
    then (time, commits, bytes and so on, in the units of `simulator.trace.COLUMNS`) are
    arrays like the metrics, since runs may be evaluated at different times. Where there
    is no such evaluation, numbers are NaN.

    Raises:
        StudyError: No run has ended, or a table is damaged.
        UserError: xarray is not installed.
    """
    extra("xarray", "xarray", "to_xarray")  # pandas makes use of it
    table = tidy(study)
    columns = swept_columns(study)
    keys = list(dict.fromkeys(columns.values()))
    whole = not table[keys].isna().any(axis=None)
    along = {
        columns[other]: columns[key]
        for key in reversed(swept_axes(study))
        for other in follow(study, key)
        if other not in swept_axes(study) and whole
    }
    of_group = ["group"]
    if whole:
        of_group = ["variant", *(key for key in keys if key not in along)]
    axes = [*of_group, "replicate", "evaluation"]
    table["evaluation"] = table.groupby("run").cumcount()
    values = [name for name in table if name not in (*axes, *OF_RUN, *keys)]
    found = table.set_index(axes)[values].to_xarray()
    for key, axis in along.items():
        values_of = table.drop_duplicates(axis).set_index(axis)[key]
        found = found.assign_coords(
            {key: (axis, values_of.loc[found[axis].values].to_numpy())}
        )
    for name in values:
        found[name].attrs |= _told(study, str(name))
    return found.assign_attrs(name=study.manifest["name"])


def _told(study: Study, name: str) -> dict[str, str]:
    """Returns unit and meaning of a column, by the names that NetCDF's readers know."""
    known = metric_of_study(study.manifest, name)
    if known is not None:
        told = {"long_name": known.meaning, "units": known.unit}
        return {k: v for k, v in told.items() if v} | {"direction": known.direction}
    column = COLUMNS["evaluations"].get(name)
    if column is None:
        return {}
    told = {"long_name": column.meaning, "units": column.unit}
    return {key: value for key, value in told.items() if value}
