"""The base of all data sets, with their common options; and of token sets."""

import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, Field, model_validator

from ...files.reading import files
from ...files.reading.published import Published, called, missing, sources
from ...parts.base import LocatedError, Part, Rule
from ...parts.errors import ScenarioError
from .base import Dataset

T = TypeVar("T", int, str)
OF_REPLICATE = "replicate"
"""Value of `split_seed` that follows the replicate; `study.expand` replaces it."""
Scale = Literal["raw", "unit", "standard"]
"""Scales of features, as `Data.scale` documents them."""


def different(classes: tuple[T, ...]) -> tuple[T, ...]:
    """Returns classes unchanged if they are distinct; for validation."""
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
    """Number of training rows to use, after the choice of `classes`; by default all."""
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
    """Name of a token, in messages."""
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


Roles = dict[str, Path]
"""Files by their roles, which are mostly their official names."""


class FileSet(NamedTuple):
    """Files that make a data set.

    Attributes:
        name: Name of the data set, and of its folder in the data folder.
        roles: Roles of the files, all of which are needed.
        published: Facts on the set; its checksums decide on its name.
        folders: Plain names of its folders, whose files come first.
        named: Pattern in the names of its files in other folders.
        identify: Function that returns the role of a file, "" for a stranger; of
            several files in one role the first counts.
        remark: Function that returns a further remark on missing files.
    """

    name: str
    roles: tuple[str, ...]
    published: Published
    folders: Collection[str]
    named: re.Pattern[str]
    identify: Callable[[Path], str] = lambda path: path.name
    remark: Callable[[], str] = lambda: ""

    def found(self) -> Roles:
        """Returns those of the files that exist."""
        found: Roles = {}
        for path in files.candidates(self.folders, self.named):
            found.setdefault(self.identify(path), path)
        return {role: found[role] for role in self.roles if role in found}

    def complete(self) -> Roles:
        """Returns all files.

        Raises:
            DataError: Files are missing.
        """
        found = self.found()
        absent = [role for role in self.roles if role not in found]
        if absent:
            raise missing(self.name, self.published, absent, self.remark())
        return found

    def called(self, paths: Roles) -> str:
        """Returns the name of the set, by its files.

        Raises:
            DataError: A file `SOURCE` in their folder gives no name.
        """
        return called(self.name, self.published, paths)

    def paths(self) -> list[Path]:
        """Returns the paths of the files that exist.

        A file `SOURCE` is one of them where it may decide on the set's name.
        """
        paths = self.found()
        decides = any(file.checksum or file.size for file in self.published.files)
        return [*paths.values(), *(sources(paths) if decides else [])]


class FileData(Data):
    """A data set of files in the data folder."""

    files: ClassVar[FileSet]
    """The files, all of which are needed, and the published facts on them."""

    @classmethod
    def __pydantic_init_subclass__(cls, **options: object) -> None:
        super().__pydantic_init_subclass__(**options)
        cls.published = cls.files.published

    def located_files(self) -> list[Path]:
        return self.files.paths()
