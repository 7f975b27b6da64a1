"""The views of a data set, one or several for each party."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from ..config.base import LocatedError, NumClients
from ..config.errors import ScenarioError
from ..config.parts import Part
from ..config.text import suggestion
from ..data.base import Dataset
from .parts import Columns

Names = Annotated[tuple[str, ...], Field(min_length=1)]


class Views(Part):
    """Every party holds some views of all samples, whole: kinds of measurements.

    The description of a data set names its views; `mfeat` has six.
    """

    kind: Literal["views"] = "views"
    family: ClassVar[str] = "vertical"
    parties: NumClients
    """Number of parties."""
    groups: Annotated[dict[str, Names], Field(min_length=1)] | None = None
    """Views of each named party. By default the views go to the parties in contiguous
    blocks, in the order of the data; the first parties hold one more where they do not
    divide."""

    @model_validator(mode="after")
    def _of_all(self) -> "Views":
        if self.groups is not None and len(self.groups) != self.parties:
            raise LocatedError(
                f"groups must have an entry for each of the {self.parties} parties, "
                f"got {len(self.groups)}; change one of them",
                ("groups",),
            )
        return self

    @property
    def num_clients(self) -> int:
        """Number of parties."""
        return self.parties

    def make(self, dataset: Dataset) -> Columns:
        """Returns the columns of each party, in the order of the data's columns.

        Frames of a row therefore stay frames of every party's part of it.
        """
        known = list(dict.fromkeys(dataset.views))
        if len(known) < self.parties:
            shown = f"{len(known)} ({', '.join(known)})" if known else "none"
            raise ScenarioError(
                f"problem.partition.parties must be at most the number of views of "
                f"{dataset.name}, got {self.parties} where it has {shown}; take fewer "
                "parties, or the partition vertical"
            )
        view = np.array(dataset.views)
        return [np.flatnonzero(np.isin(view, part)) for part in self._parts(known)]

    def _parts(self, known: list[str]) -> list[list[str]]:
        if self.groups is None:
            return [part.tolist() for part in np.array_split(known, self.parties)]
        holder: dict[str, str] = {}
        for party, names in self.groups.items():
            where = f"problem.partition.groups.{party}"
            for name in names:
                if name not in known:
                    raise ScenarioError(
                        f"{where} must name views of the data, got {name!r}; "
                        f"{suggestion(name, known)}"
                    )
                if name in holder:
                    raise ScenarioError(
                        f"{where} must hold views that no party has yet, got {name!r} "
                        f"of {holder[name]}; take it from one"
                    )
                holder[name] = party
        return [list(names) for names in self.groups.values()]
