"""Partitions: who holds which rows or columns. No JAX here."""

from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, Field, model_validator

from simulator.config.base import (
    NumClients,
    PlacedError,
    Quantity,
    Says,
)
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


class Vertical(Part):
    """Every party holds some columns of all samples.

    Source: VAFL, V-30: contiguous blocks of equal size (the first blocks one column
    wider where the columns do not divide).
    """

    kind: Literal["vertical"] = "vertical"
    made_by: ClassVar[str] = "simulator.problems.partitions.columns:vertical"
    family: ClassVar[str] = "vertical"
    parties: NumClients | None = None
    """Number of contiguous blocks of columns."""
    groups: (
        Annotated[
            dict[str, Annotated[tuple[int | str, ...], Field(min_length=1)]],
            Field(min_length=1),
        ]
        | None
    ) = None
    """Columns of each named party: by index, name, pattern of names such as `"tag_*"`,
    or inclusive range `"0-111"`."""

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


class Strips(Part):
    """Every party holds an upright strip of every image, all of the same width."""

    kind: Literal["strips"] = "strips"
    made_by: ClassVar[str] = "simulator.problems.partitions.columns:strips"
    family: ClassVar[str] = "vertical"
    parties: NumClients
    image: tuple[int, int, int] | None = None
    """Height, width and depth of the whole images; by default square ones."""

    @property
    def num_clients(self) -> int:
        """Number of parties."""
        return self.parties


class Horizontal(Part):
    """What every partition by rows has: its clients, who hold all columns."""

    family: ClassVar[str] = "horizontal"
    clients: NumClients

    @property
    def num_clients(self) -> int:
        """Number of clients."""
        return self.clients


class Iid(Horizontal):
    """Every client holds an equal, random share of the samples."""

    kind: Literal["iid"] = "iid"
    made_by: ClassVar[str] = "simulator.problems.partitions.rows:iid"


class Labels(Horizontal):
    """Every client holds equally many samples of a few classes.

    Samples sorted by class are cut into `clients * classes_per_client` shards of equal
    size, of which each client is dealt `classes_per_client` at random.

    Source: McMahan, Moore, Ramage, Hampson and Agüera y Arcas, Communication-Efficient
    Learning of Deep Networks from Decentralized Data (2017), section 3.
    """

    kind: Literal["labels"] = "labels"
    made_by: ClassVar[str] = "simulator.problems.partitions.rows:labels"
    classes_per_client: Annotated[int, Field(ge=1)]


class Dirichlet(Horizontal):
    """The samples of each class are shared in proportions drawn from a Dirichlet law.

    Of every class k a proportion p_k, m goes to client m, with p_k ~ Dir(alpha, ...,
    alpha), independently: both the sizes and the mixtures of clients differ. This is
    the scheme of Yurochkin et al., not that of Hsu, Qi and Brown (2019), who draw a
    mixture of classes for each of clients of equal size.

    Source: Yurochkin et al., Bayesian Nonparametric Federated Learning of Neural
    Networks (2019), section 4, heterogeneous partition.
    """

    kind: Literal["dirichlet"] = "dirichlet"
    made_by: ClassVar[str] = "simulator.problems.partitions.rows:dirichlet"
    alpha: Annotated[float, Field(gt=0, le=1e9)]
    """Concentration: near 0 every class has one holder, large values share equally."""
    least: Annotated[int, Field(ge=1)] = 1
    """Samples that every client must hold; proportions are drawn again until it does,
    so that they follow the Dirichlet law given that."""


class Sizes(Horizontal):
    """Every client holds a random share of the samples, in proportion to its weight."""

    kind: Literal["sizes"] = "sizes"
    made_by: ClassVar[str] = "simulator.problems.partitions.rows:sizes"
    weights: Quantity
    """Positive, up to a common factor: one number per client, or an expression."""

    @model_validator(mode="after")
    def _weighed(self) -> "Sizes":
        if not isinstance(self.weights, tuple):
            return self
        if len(self.weights) != self.clients:
            raise PlacedError(
                f"weights must have one entry per client ({self.clients}), got "
                f"{len(self.weights)}; make it as long, or use an expression in m and "
                "M",
                ("weights",),
            )
        return self


class Column(Horizontal):
    """Samples are sorted by a feature and cut into groups, one for each client.

    Samples with the same value of the feature, such as a user's number, are never
    separated.
    """

    kind: Literal["column"] = "column"
    made_by: ClassVar[str] = "simulator.problems.partitions.rows:column"
    column: Annotated[
        Annotated[int, Field(ge=0)] | str,
        Says("the name or the number of a column, from 0", "age"),
    ]
