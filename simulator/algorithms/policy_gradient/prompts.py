"""The contexts of prompts: all samples of a prompt have the same one."""

import numpy as np
from jaxtyping import Int

from ...learning.sampler import Sampler, Sampling


class PromptSampler(Sampler):
    """One row of the data for each prompt, drawn as a pool's batches of one are.

    The number of a sample's job is `group` times that of its prompt plus its place in
    the group, so that prompts are the same in all worlds of a seed.

    Args:
        seed: Seed of the run.
        pool: Rows that prompts are drawn from.
        group: Samples of a prompt.
        sampling: Way to draw rows.
    """

    def __init__(
        self, seed: int, pool: Int[np.ndarray, " N"], group: int, sampling: Sampling
    ) -> None:
        super().__init__(seed, [pool], 1, sampling=sampling)
        self._group = group

    def _drawn(
        self, client: Int[np.ndarray, " j"], job: Int[np.ndarray, " j"]
    ) -> Int[np.ndarray, "j 1"]:
        return super()._drawn(np.zeros_like(client), job // self._group)
