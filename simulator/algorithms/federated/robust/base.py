"""What all robust aggregations have in common: options, and what they need."""

from abc import abstractmethod
from typing import Any, ClassVar

from ....models.parts import ModelCounts
from ..chain import AggregatePart, Chained
from ..parts import Count, Weigh

ROBUST = "stalesim.simulator.algorithms.federated.robust"


class RobustPart(AggregatePart):
    """Common base of the robust aggregations of a commit's contributions.

    They are those of a row, or what has gathered where the protocol gathers them, each
    times its staleness weight. The server must see them one by one: a stage that shows
    it their sum alone goes with `mean`.
    """

    made_by: ClassVar[str] = f"{ROBUST}.gathering:robust"
    buckets: Count | None = None
    """B: contributions of client m are averaged in bucket m mod B, and the means of the
    buckets are aggregated as soon as none is empty, then emptied; until then commits
    leave the model as it is. On the protocol `asynchronous` it is BASGD. By default
    contributions are aggregated one by one.
    Source: Yang and Li, BASGD: Buffered Asynchronous SGD for Byzantine Learning (2021),
    Algorithm 2."""

    @property
    def least(self) -> int:
        """Contributions, or buckets, with which an enemy is tolerated, at least."""
        return 3

    def fits(self, method: Chained) -> None:
        """Refuses a weight that clients name themselves."""
        weigh = next((s for s in method.stages if isinstance(s, Weigh)), None)
        if weigh is not None and weigh.weighting != "equal":
            raise method.refusal(
                weigh,
                "weighting",
                "must be equal for a robust aggregation, for the number of samples is "
                f"a client's own word, got {weigh.weighting!r}; remove it",
            )

    def start(self, problem: Any, weights: Any) -> Any:
        """Returns its state before the first commit, for weights as one vector."""
        del problem, weights

    def check_model(self, method: Chained, counts: ModelCounts) -> None:
        """Refuses models whose statistics would have no aggregate."""
        method.refuse_statistics(self, counts, "lost")

    @abstractmethod
    def __call__(self, vectors: Any, there: Any, state: Any) -> tuple[Any, Any]:
        """Returns what takes the place of a mean, and the state after the commit.

        Args:
            vectors: Contributions, or means of buckets, `[B, D]`; zeros where there is
                none.
            there: Flags of those that are there, `[B]`, at least `least` of them.
            state: State before.
        """
