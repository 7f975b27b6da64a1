"""Sums as rows of tokens: a prompt such as 7+5= and its answer, 12."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Int
from pydantic import Field
from typing_extensions import override

from ...problem.data import base
from ...problem.data.base import Dataset
from ...problem.data.base import Field as Input
from ...problem.data.parts import TokenRows
from ...problem.data.split import divided

PLUS, EQUALS = 10, 11
"""Tokens after the ten digits, each of which is its own number."""


class Arithmetic(TokenRows):
    """Sums of two whole numbers: every prompt `a+b=`, each answered by its digits.

    Both numbers have as many digits as the largest, and so has the answer as the
    largest sum: the first digits may be zeros. A row is the prompt and the answer
    without its last token; its labels are the tokens one place later, so that the last
    of them are the answer. Prompts are divided at random, a + b apart from b + a.
    """

    kind: Literal["arithmetic"] = "arithmetic"
    tokens: ClassVar[str] = "characters"
    largest: Annotated[int, Field(ge=1, le=999)] = 9
    """Largest of the two numbers, which count from 0."""

    @override
    def make(self) -> Dataset:
        first, second = np.indices(2 * (self.largest + 1,)).reshape(2, -1)
        wide, length = len(str(self.largest)), len(str(2 * self.largest))
        whole = np.concatenate(
            [
                digits(first, wide),
                np.full((first.size, 1), PLUS),
                digits(second, wide),
                np.full((first.size, 1), EQUALS),
                digits(first + second, length),
            ],
            axis=1,
        )
        x, y = whole[:, :-1], whole[:, 1:]
        found = divided(
            self,
            "arithmetic",
            (x, y),
            num_classes=EQUALS + 1,
            columns=base.counted("token", x.shape[1]),
            fields=(Input("", x.shape[1:], whole=True),),
        )
        return found._replace(answer=length)


def digits(numbers: Int[np.ndarray, " n"], width: int) -> Int[np.ndarray, "n width"]:
    """Returns the decimal digits of whole numbers, the highest first."""
    return numbers[:, None] // 10 ** np.arange(width)[::-1] % 10
