"""Local steps of the jobs of a run, where they change."""

import numpy as np
from jaxtyping import Int


class JobSteps:
    """Local steps of the jobs of a run: a job has those valid when it reads.

    Attributes:
        most: Most local steps of a job, those of the algorithm.
        next: Local steps of the next job, 1 to `most`: a rule changes them.
    """

    def __init__(self, num_clients: int, most: int) -> None:
        self.most = self.next = most
        self._given: list[list[int]] = [[] for _ in range(num_clients)]

    def clear(self) -> None:
        """Begins a run; jobs of one that is simulated again get the same."""
        self.next = self.most

    def change(self, steps: int) -> None:
        """Gives the next job of every client some steps, at most `most`."""
        self.next = max(1, min(steps, self.most))

    def give(self, client: int, job: int) -> None:
        """Gives a job of a client its steps."""
        self.put(client, job, self.next)

    def put(self, client: int, job: int, steps: int) -> None:
        """Notes the steps of a job."""
        mine = self._given[client]
        mine += [0] * (job + 1 - len(mine))
        mine[job] = steps

    def of_job(self, client: int, job: int) -> int:
        """Returns the steps of a job."""
        return self._given[client][job]

    def of(
        self, clients: Int[np.ndarray, " J"], jobs: Int[np.ndarray, " J"]
    ) -> Int[np.ndarray, " J"]:
        """Returns the steps of some jobs."""
        pairs = zip(clients.tolist(), jobs.tolist(), strict=True)
        return np.array([self._given[c][j] for c, j in pairs], np.int32)
