"""FLAD: clients behind the mean, with local steps by how far they are."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field

from ...config.expressions import SLACK
from .base import Choose, Preference, PreferringPool


class Flad(Preference):
    """Those whose loss is no less than the mean, with local steps by their loss.

    All others train no more until they are behind again. Of those who are behind, free
    or not, the worst makes all of the algorithm's local steps and the best
    `least_steps` of them; one between, with loss L of the least L_min to the most
    L_max, makes

        floor(most - (most - least) (L_max - L) / (L_max - L_min))

    Clients that have not worked yet are selected first, with all steps. If more are
    behind than there are places, the worst are taken; if none of the free ones is, the
    worst of them, with `least_steps`, so that no place stays empty.

    Source: Doriguzzi-Corin and Siracusa, FLAD: Adaptive Federated Learning for DDoS
    Attack Detection (2024), by its authors' code (`flad_training.py`). Other than
    there, a client's score is the loss of its last job, as old as that job, for the F1
    score of the new model on validation rows of its own; `most` stays as it is, where
    the code multiplies it by 1 less the worst score; and the server's mean is of those
    who were selected, without the others' models, which are the server's own.
    """

    kind: Literal["flad"] = "flad"
    asks: ClassVar[tuple[str, ...]] = ("losses",)
    least_steps: Annotated[int, Field(ge=1)] | None = None
    """Local steps of the best of those who are behind; by default all make as many as
    the algorithm says."""

    @property
    def varies_steps(self) -> bool:
        """Whether it gives those who are selected fewer local steps."""
        return self.least_steps is not None

    def make(self, pool: PreferringPool) -> Choose:
        """Returns what chooses in one run."""

        def choose(number: int, now: float) -> list[int]:
            free, losses = np.array(pool.free(now), int), pool.answers.losses
            if not free.size:
                return []
            known = losses[np.isfinite(losses)]
            # The mean of equal losses may be rounded to above all of them.
            mean = min(known.mean(), known.max()) if known.size else -np.inf
            mine = np.nan_to_num(losses[free], nan=np.inf)
            order = np.argsort(-mine, kind="stable")
            there = max(int((mine >= mean).sum()), 1)
            found = free[order[: min(number, there)]]
            if self.least_steps is not None:
                behind = known[known >= mean]
                steps = self._steps(losses[found], behind, pool.most_steps)
                pool.give_steps(dict(zip(found.tolist(), steps.tolist(), strict=True)))
            return found.tolist()

        return choose

    def _steps(
        self,
        losses: Float[np.ndarray, " N"],
        behind: Float[np.ndarray, " B"],
        most: int,
    ) -> Int[np.ndarray, " N"]:
        """Returns the local steps of clients who are selected, by who is behind."""
        assert self.least_steps is not None
        if not behind.size:
            return np.full(losses.size, most)
        width = behind.max() - behind.min()
        # One who stands in is below the least of those who are behind.
        share = (behind.max() - losses) / width if width else losses < behind.min()
        fewer = (most - min(self.least_steps, most)) * np.minimum(share, 1)
        steps = np.floor(most - fewer + SLACK)
        return np.where(np.isfinite(losses), steps, most).astype(int)
