"""The base of all data sets, with their common options; and that of sets of tokens."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, Field, model_validator

from ...files.reading.published import Published
from ...parts.base import LocatedError, Rule
from ...parts.errors import ScenarioError
from ...parts.parts import Part
from .base import Dataset

T = TypeVar("T", int, str)
OF_REPLICATE = "replicate"
"""Value of `split_seed` that follows the replicate; `study.expand` replaces it."""
Scale = Literal["raw", "unit", "standard"]
"""Scales of features, as `Data.scale` documents them."""


def different(classes: tuple[T, ...]) -> tuple[T, ...]:
    """Returns classes unchanged if none stands twice; for validation."""
    twice = [name for name in classes if classes.count(name) > 1]
    if twice:
        raise ValueError(
            f"must name every class once, got {twice[0]} twice; remove one"
        )
    return classes


Classes = Annotated[
    Literal["even_odd", "lower_upper"]
    | Annotated[
        tuple[Annotated[int, Field(ge=0)], ...],
        Field(min_length=2),
        AfterValidator(different),
    ],
    Rule("even_odd, lower_upper, or a list of two or more classes", "[3, 8]"),
]
"""Entry `classes`: a regrouping in two classes, or the classes to keep."""


class Data(Part):
    """Data set: the scale of its features and its division into rows.

    First the rows are divided into training and test rows, then `classes` are taken,
    then `limit` cuts the training rows, then features are scaled.

    Source: VAFL, V-11: pixel scale is always explicit.
    """

    published: ClassVar[Published | None] = None
    """Origin, licence and files of a set that is published; None of any other."""
    scale: Scale = "raw"
    """`raw`: as stored. `unit`: pixels divided by their largest possible value (255 for
    bytes), other features by their extremes, from 0 to 1. `standard`: zero mean, unit
    variance. Extremes, means and variances are those of the training rows: of each
    column, but of all of a user's own array with more than two axes."""
    split_seed: Annotated[
        Annotated[int, Field(ge=0)] | Literal["replicate"],
        Rule("a whole number >= 0, or the word replicate", "replicate"),
    ] = 0
    """Key of the division into training and test rows. A number: the same division for
    every run. `replicate`: that replicate's seed, so that intervals over replicates
    contain the draw of the test rows, too."""
    test_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """Fraction of rows kept for testing, of sets that are published undivided."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """Number of training rows to use, of those that `classes` keeps; by default all."""
    classes: Classes | None = None
    """`even_odd`: two classes, 1 for odd labels; `lower_upper`: two classes, 1 for the
    upper half of the labels; a list: the rows of these classes only, renumbered from 0
    in the order given. By default all classes."""

    @property
    def split(self) -> int:
        """Key of the division of a run.

        Raises:
            ScenarioError: It follows the replicate, which is not yet known.
        """
        if isinstance(self.split_seed, str):
            raise ScenarioError(
                "problem.data.split_seed must be a number where no replicate is known, "
                f"got {self.split_seed!r}; take the scenario of a run"
            )
        return self.split_seed

    def make(self) -> Dataset:
        """Returns the data set: read or drawn, divided and scaled.

        Raises:
            DataError: Files are missing or damaged.
            ScenarioError: The limit, the test fraction or the classes do not fit.
        """
        raise NotImplementedError

    def located_files(self) -> Iterable[str | Path] | None:
        return None


class TokenRows(Data):
    """Rows of tokens, each a number; labels are tokens that follow them."""

    tokens: ClassVar[str] = "tokens"
    """What a token is, in messages."""
    scale: Scale = "raw"
    """`raw`, and nothing else: tokens are numbered, not measured."""

    @model_validator(mode="after")
    def _all_tokens(self) -> "TokenRows":
        of = self.__class__.model_fields["kind"].default
        if self.scale != "raw":
            raise LocatedError(
                f"scale must be raw for {of}, whose {self.tokens} are numbered, got "
                f"{self.scale!r}; leave it out",
            )
        if self.classes is not None:
            raise LocatedError(
                f"classes must not be set for {of}, each of whose {self.tokens} is "
                "one; leave it out",
            )
        return self
