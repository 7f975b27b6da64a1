"""Sentiment140: tweets by their authors, from LEAF's files, as bags of words."""

import re
from collections import Counter
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float32
from pydantic import Field

from ....files.reading import limits
from ....files.reading.published import Published
from ....parts.errors import ScenarioError
from ....problem.data.base import Dataset
from ....problem.data.groups import grouping
from ....problem.data.split import finished
from .format import Leaf, LeafRows, recorded, whole

WORD = re.compile(r"[\w']+|[.,!?;]")
"""A word or a mark, as LEAF's `split_line` has it."""
FLOAT_BYTES = 4
TEXT = 4
"""Place of the text in a tweet: after its number, date, query and author."""


class LeafSent140(Leaf):
    """Sentiment140 as LEAF's scripts make it: tweets, negative (0) or positive (1).

    A row is a bag of words: how often each of the `words` most frequent words of the
    training tweets stands in it (of equally frequent ones the first in the alphabet).
    LEAF's own bag takes GloVe's words instead. What a word is LEAF says: `Good` is not
    `good`. Users are authors.
    """

    kind: Literal["leaf_sent140"] = "leaf_sent140"
    published: ClassVar[Published | None] = recorded(
        "sent140", "Sentiment140 (Go, Bhayani and Huang, 2009)", "none stated"
    )
    folders: ClassVar[tuple[str, ...]] = ("leafsent140", "sent140")
    holds: ClassVar[str] = "tweets, lists with the text in fifth place, and 0 or 1"
    words: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Number of words that are counted, fewer where the tweets have fewer."""

    @staticmethod
    def encoded(x: list[Any], y: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        words = np.empty(len(x), object)
        words[:] = [WORD.findall(tweet[TEXT]) for tweet in x]
        return words, whole(y, 2)

    def finish(self, name: str, train: LeafRows, test: LeafRows) -> Dataset:
        counted = Counter(word for tweet in train.x for word in tweet)
        ranked = sorted(counted, key=lambda word: (-counted[word], word))
        columns = tuple(ranked[: self.words])
        rows = len(train.y) + len(test.y)
        if (size := FLOAT_BYTES * rows * len(columns)) > limits.LARGEST:
            raise ScenarioError(
                f"problem.data.words must make bags of {limits.shown(limits.LARGEST)} "
                f"at most, got {limits.shown(size)} of {rows:,} tweets and "
                f"{len(columns):,} words; lower it, or take fewer users"
            )
        return finished(
            self,
            name,
            (_bags(train.x, columns), train.y),
            (_bags(test.x, columns), test.y),
            num_classes=2,
            columns=columns,
            groupings=(grouping("user", train.users),),
        )


def _bags(tweets: Any, columns: tuple[str, ...]) -> Float32[np.ndarray, "N P"]:
    """Returns how often each word stands in each tweet."""
    place = {word: number for number, word in enumerate(columns)}
    bags = np.zeros((len(tweets), len(columns)), np.float32)
    for bag, tweet in zip(bags, tweets, strict=True):
        for word in tweet:
            if word in place:
                bag[place[word]] += 1
    return bags
