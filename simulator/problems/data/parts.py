"""Data sets: their options, and what loads each. No JAX here."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, Field, model_validator

from simulator.config.base import (
    FilePath,
    PlacedError,
    Says,
)
from simulator.config.errors import ScenarioError
from simulator.config.parts import Part

T = TypeVar("T", int, str)
OF_REPLICATE = "replicate"
"""A `split_seed` that follows the replicate; `study.expand` puts its seed there."""
MOST_NUMBERS = 50_000_000
"""Of data that are drawn: 400 MB before they are rounded to float32."""


def _different(classes: tuple[T, ...]) -> tuple[T, ...]:
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
        AfterValidator(_different),
    ],
    Says("even_odd, lower_upper, or a list of two or more classes", "[3, 8]"),
]
"""A regrouping of classes in two, or the classes that are kept."""


class Data(Part):
    """What every data set has: the scale of its features and its split.

    First the rows are divided into training and test rows, then `classes` are taken,
    then `limit` cuts the training rows, then features are scaled.

    Source: VAFL, V-11: pixel scale is always explicit.
    """

    scale: Literal["raw", "unit", "standard"] = "unit"
    """`raw`: as stored (pixels 0-255); `unit`: divided by the largest possible value;
    `standard`: zero mean, unit variance, by the statistics of the training rows."""
    split_seed: Annotated[
        Annotated[int, Field(ge=0)] | Literal["replicate"],
        Says("a whole number >= 0, or the word replicate", "replicate"),
    ] = 0
    """Key of the division into training and test rows. A number: the same division for
    every run. `replicate`: that replicate's seed, so that intervals over replicates
    contain the draw of the test rows, too."""
    test_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """Fraction of rows kept for testing, where the set brings no division."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """Use only so many training rows, of those that `classes` keeps."""
    classes: Classes | None = None
    """`even_odd`: two classes, 1 for odd labels; `lower_upper`: two classes, 1 for the
    upper half of the labels; a list: the rows of these classes only, renumbered from 0
    in the order given. By default all classes."""

    @property
    def split(self) -> int:
        """Key of the division of a run.

        Raises:
            ScenarioError: it follows the replicate, and of which is not yet known.
        """
        if isinstance(self.split_seed, str):
            raise ScenarioError(
                "problem.data.split_seed must be a number where no replicate is known, "
                f"got {self.split_seed!r}; take the scenario of a run"
            )
        return self.split_seed

    def found_files(self) -> Iterable[str | Path] | None:
        """Returns the files that the set finds by itself; None if it finds none so."""
        find = getattr(self.maker(), "finds", None) if self.made_by else None
        return None if find is None else find(self)


class Digits(Data):
    """scikit-learn's 1,797 real images of 8x8 pixels, ten classes."""

    kind: Literal["digits"] = "digits"
    made_by: ClassVar[str] = "simulator.problems.data.bundled:digits"


class BreastCancer(Data):
    """scikit-learn's 569 real cases with 30 features, two classes."""

    kind: Literal["breast_cancer"] = "breast_cancer"
    made_by: ClassVar[str] = "simulator.problems.data.bundled:breast_cancer"


class Mnist(Data):
    """MNIST: the full set from idx files, else 5,000 of its images that ship."""

    kind: Literal["mnist"] = "mnist"
    made_by: ClassVar[str] = "simulator.problems.data.idx:mnist"
    source: Literal["auto", "idx", "bundled"] = "auto"


class FashionMnist(Data):
    """Fashion-MNIST from idx files, else its stand-in."""

    kind: Literal["fashion_mnist"] = "fashion_mnist"
    made_by: ClassVar[str] = "simulator.problems.data.idx:fashion_mnist"
    source: Literal["auto", "idx", "standin"] = "auto"


class Cifar10(Data):
    """CIFAR-10, binary version or else Python version, else its stand-in."""

    kind: Literal["cifar10"] = "cifar10"
    made_by: ClassVar[str] = "simulator.problems.data.cifar:cifar10"
    source: Literal["auto", "binary", "python", "standin"] = "auto"


class Usps(Data):
    """USPS, digits of 16x16 pixels, from libsvm or h5 files, else its stand-in."""

    kind: Literal["usps"] = "usps"
    made_by: ClassVar[str] = "simulator.problems.data.usps:usps"
    source: Literal["auto", "libsvm", "h5", "standin"] = "auto"


class Parkinson(Data):
    """UCI 470, speech features of Parkinson's disease, else its stand-in."""

    kind: Literal["parkinson"] = "parkinson"
    made_by: ClassVar[str] = "simulator.problems.data.parkinson:parkinson"
    source: Literal["auto", "csv", "standin"] = "auto"


class Mimic(Data):
    """MIMIC-III, death in hospital after the first 48 hours, else its stand-in.

    Columns 42 v to 42 v + 41 are the statistics of variable v, of 17, in both.
    """

    kind: Literal["mimic"] = "mimic"
    made_by: ClassVar[str] = "simulator.problems.data.mimic:mimic"
    source: Literal["auto", "csv", "standin"] = "auto"
    scale: Literal["raw", "unit", "standard"] = "standard"


class NusWide(Data):
    """NUS-WIDE, features of images and tags, two concepts, else its stand-in.

    Columns 0 to 633 are of the images, 634 to 1633 tags; of the stand-in 0 to 79 and 80
    to 199.
    """

    kind: Literal["nus_wide"] = "nus_wide"
    made_by: ClassVar[str] = "simulator.problems.data.nus_wide:nus_wide"
    source: Literal["auto", "dat", "standin"] = "auto"
    scale: Literal["raw", "unit", "standard"] = "standard"
    concepts: Annotated[
        tuple[Annotated[str, Field(pattern=r"^[a-z]+$")], ...],
        Field(min_length=2),
        AfterValidator(_different),
    ] = ("person", "animal")
    """Rows are kept that have exactly one of them; those with the first are class 1.
    The stand-in has none."""


class Credit(Data):
    """UCI 350, default of credit card clients, else its stand-in.

    Columns 0 to 17 are payments and bills, 18 to 32 the profile, in both.
    """

    kind: Literal["credit"] = "credit"
    made_by: ClassVar[str] = "simulator.problems.data.credit:credit"
    source: Literal["auto", "csv", "xls", "standin"] = "auto"
    scale: Literal["raw", "unit", "standard"] = "standard"


class Speech(Data):
    """SWB300, frames of speech with their states, else its stand-in.

    A row is a piece of an utterance: the 260 features of each of its frames, one frame
    after the other, and a class for every frame. A split keeps utterances whole.
    """

    kind: Literal["speech"] = "speech"
    made_by: ClassVar[str] = "simulator.problems.data.speech:speech"
    source: Literal["auto", "npz", "standin"] = "auto"
    scale: Literal["raw", "unit", "standard"] = "standard"
    """By the statistics of a feature in all frames."""
    frames: Annotated[int, Field(ge=1, le=10_000)] = 21
    """Of a row."""

    @model_validator(mode="after")
    def _all_states(self) -> "Speech":
        if self.classes is not None:
            raise PlacedError(
                "classes must not be set for speech, whose frames are never without "
                "their neighbours; leave it out",
                ("classes",),
            )
        return self


class SyntheticLogistic(Data):
    """Gaussian features with labels drawn from a planted logistic model."""

    kind: Literal["synthetic_logistic"] = "synthetic_logistic"
    made_by: ClassVar[str] = "simulator.problems.data.synthetic:synthetic_logistic"
    scale: Literal["raw", "unit", "standard"] = "raw"
    """`raw` features are standard normal, as the planted model has them."""
    num_samples: Annotated[int, Field(ge=2)] = 1250
    """Training and test rows together."""
    num_features: Annotated[int, Field(ge=1)] = 20
    data_seed: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _in_memory(self) -> "SyntheticLogistic":
        if self.num_samples * self.num_features > MOST_NUMBERS:
            raise PlacedError(
                f"num_samples x num_features must be at most {MOST_NUMBERS:,}, got "
                f"{self.num_samples:,} x {self.num_features:,}; lower one of them",
                ("num_samples",),
            )
        return self


class Npz(Data):
    """The user's own arrays: `x` `[N, P]`, `y` `[N]`, perhaps `x_test` and `y_test`."""

    kind: Literal["npz"] = "npz"
    made_by: ClassVar[str] = "simulator.problems.data.own:npz"
    path: FilePath


class Csv(Data):
    """The user's own table: one row a sample, one column the label."""

    kind: Literal["csv"] = "csv"
    made_by: ClassVar[str] = "simulator.problems.data.own:csv"
    path: FilePath
    label: str
    """Name of the label's column; labels are numbered in sorted order."""
