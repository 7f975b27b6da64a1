"""What is learned: data sets, how they are divided, models and losses."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from simulator.scenario.base import Config


class Data(Config):
    """What every data set has: the scale of its features and its split.

    Source: VAFL, V-11: pixel scale is always explicit.
    """

    scale: Literal["raw", "unit", "standard"] = "unit"
    """`raw`: as stored (pixels 0-255); `unit`: divided by the largest possible value;
    `standard`: zero mean, unit variance, by the statistics of the training rows."""
    split_seed: Annotated[int, Field(ge=0)] = 0
    """Key of the fixed division into training and test rows, the same for every run."""
    test_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """Fraction of rows kept for testing, where the set brings no division."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """Use only so many training rows."""


class Digits(Data):
    """scikit-learn's 1,797 real images of 8x8 pixels, ten classes."""

    kind: Literal["digits"] = "digits"


class BreastCancer(Data):
    """scikit-learn's 569 real cases with 30 features, two classes."""

    kind: Literal["breast_cancer"] = "breast_cancer"


class Mnist(Data):
    """MNIST: the full set from idx files, else 5,000 of its images that ship."""

    kind: Literal["mnist"] = "mnist"
    source: Literal["auto", "idx", "bundled"] = "auto"


class FashionMnist(Data):
    """Fashion-MNIST from idx files, else its stand-in."""

    kind: Literal["fashion_mnist"] = "fashion_mnist"
    source: Literal["auto", "idx", "standin"] = "auto"


class Cifar10(Data):
    """CIFAR-10, binary version, else its stand-in."""

    kind: Literal["cifar10"] = "cifar10"
    source: Literal["auto", "binary", "standin"] = "auto"


class Parkinson(Data):
    """UCI 470, speech features of Parkinson's disease, else its stand-in."""

    kind: Literal["parkinson"] = "parkinson"
    source: Literal["auto", "csv", "standin"] = "auto"


class SyntheticLogistic(Data):
    """Gaussian features with labels drawn from a planted logistic model."""

    kind: Literal["synthetic_logistic"] = "synthetic_logistic"
    scale: Literal["raw", "unit", "standard"] = "raw"
    """`raw` features are standard normal, as the planted model has them."""
    num_samples: Annotated[int, Field(ge=2)] = 1250
    """Training and test rows together."""
    num_features: Annotated[int, Field(ge=1)] = 20
    data_seed: Annotated[int, Field(ge=0)] = 0


class Npz(Data):
    """The user's own arrays: `x` `[N, P]`, `y` `[N]`, perhaps `x_test` and `y_test`."""

    kind: Literal["npz"] = "npz"
    path: str


class Csv(Data):
    """The user's own table: one row a sample, one column the label."""

    kind: Literal["csv"] = "csv"
    path: str
    label: str
    """Name of the label's column; labels are numbered in sorted order."""


class Vertical(Config):
    """Every party holds some columns of all samples.

    Source: VAFL, V-30: contiguous blocks of equal size (the first blocks one column
    wider where the columns do not divide).
    """

    kind: Literal["vertical"] = "vertical"
    family: ClassVar[str] = "vertical"
    parties: Annotated[int, Field(ge=1)] | None = None
    """Number of contiguous blocks of columns."""
    groups: (
        Annotated[
            dict[str, Annotated[tuple[int | str, ...], Field(min_length=1)]],
            Field(min_length=1),
        ]
        | None
    ) = None
    """Columns of each named party, by index, name, or inclusive range `"0-111"`."""

    @model_validator(mode="after")
    def _one_way(self) -> "Vertical":
        if (self.parties is None) == (self.groups is None):
            raise ValueError(
                "must have either parties or groups, not both or neither; remove one, "
                "or add parties: NUMBER"
            )
        return self

    @property
    def num_clients(self) -> int:
        """Number of parties."""
        return self.parties or len(self.groups or {})


class Iid(Config):
    """Every client holds an equal, random share of the samples, all columns."""

    kind: Literal["iid"] = "iid"
    family: ClassVar[str] = "horizontal"
    clients: Annotated[int, Field(ge=1)]

    @property
    def num_clients(self) -> int:
        """Number of clients."""
        return self.clients


class Linear(Config):
    """Linear: embeddings `x @ w` of a vertical party, or `x @ w + b` of a client."""

    kind: Literal["linear"] = "linear"
