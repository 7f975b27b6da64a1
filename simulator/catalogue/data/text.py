"""A text as a data set: blocks of its characters, and the character after each."""

import bz2
import hashlib
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Int32
from pydantic import Field

from ...files.reading import files
from ...files.reading.published import Published
from ...parts.base import FilePath
from ...parts.errors import DataError, ScenarioError
from ...parts.expressions import up
from ...problem.data import base
from ...problem.data.base import Dataset
from ...problem.data.base import Field as Input
from ...problem.data.parts import TokenRows
from ...problem.data.split import Samples, finished

NAME = "tinyshakespeare"
FILE = Path(__file__).with_name(f"{NAME}.txt.bz2")
SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
"""Of the 1,115,394 bytes of text, exactly as published."""

PUBLISHED = Published(
    origin="github.com/karpathy/char-rnn, data/tinyshakespeare/input.txt, all of it "
    f"(sha256:{SHA256})",
    licence="public domain (William Shakespeare, died 1616)",
    bundled="stalesim",
)


class Text(TokenRows):
    """Characters of a text: the user's own, or 1.1 million of Shakespeare's that ship.

    A row is a block of successive characters, each a number; its labels are the
    characters after each of them, so that a sequence model learns the next character.
    The last part of the text is for testing, and rows keep their order: `limit` takes
    the first ones. Nothing is random, and `split_seed` has no effect.
    """

    kind: Literal["text"] = "text"
    tokens: ClassVar[str] = "characters"
    published: ClassVar[Published | None] = PUBLISHED
    path: FilePath | None = None
    """Text file in UTF-8, gzipped or not; by default the text that ships."""
    block: Annotated[int, Field(ge=1, le=100_000)] = 64
    """Number of characters of a row. Blocks do not overlap."""
    test_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Fraction of the characters, the last ones, that are for testing."""

    def make(self) -> Dataset:
        """Returns the blocks of the text's first part, and of its last for testing.

        The characters of the whole text are numbered from 0 in the order of Unicode.
        No block reaches over the border of the two parts, and no label does. The rest
        at the end of a part, shorter than a block, is left out.
        """
        name, text = (NAME, shipped()) if self.path is None else _own(self.path)
        tokens, num_tokens = numbered(text)
        # The tolerance keeps 0.1 * 30 = 3.0000000000000004 from becoming four.
        num_test = up(self.test_fraction * tokens.size)
        parts = tokens[: tokens.size - num_test], tokens[tokens.size - num_test :]
        shorter = min(part.size for part in parts)
        if shorter <= self.block:
            raise ScenarioError(
                f"problem.data.block must be less than {shorter}, the characters of "
                f"the shorter part of {name}, got {self.block}; take shorter blocks, "
                "or another test_fraction"
            )
        train, test = (blocks(part, self.block) for part in parts)
        return finished(
            self,
            name,
            train,
            test,
            num_classes=num_tokens,
            columns=base.counted("token", self.block),
            fields=(Input("", (self.block,), whole=True),),
            in_order=True,
        )


def numbered(text: str) -> tuple[Int32[np.ndarray, " n"], int]:
    """Returns the number of each character of a text, and the number of distinct ones.

    They count from 0 in the order of Unicode.
    """
    points = np.frombuffer(text.encode("utf-32-le"), "<u4")
    known, tokens = np.unique(points, return_inverse=True)
    return tokens.astype(np.int32), known.size


def blocks(tokens: Int32[np.ndarray, " n"], length: int) -> Samples:
    """Returns blocks that do not overlap, and of each the tokens one place later."""
    end = (tokens.size - 1) // length * length
    shape = (-1, length)
    return tokens[:end].reshape(shape), tokens[1 : end + 1].reshape(shape)


def _own(given: str) -> tuple[str, str]:
    path: Path = files.located(given, "problem.data.path")
    content = files.read(path)
    if len(content) > files.MOST_TEXT:
        raise DataError(
            f"{path} must hold {files.shown(files.MOST_TEXT)} of text at most, got "
            f"{files.shown(len(content))}; take a part of it"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} must be a text in UTF-8, got: {error.reason} at byte "
            f"{error.start}; save it so"
        ) from error
    if len(set(text)) < 2:
        raise DataError(
            f"{path} must hold two different characters or more, got "
            f"{len(set(text))}; check problem.data.path"
        )
    return path.stem, text


def shipped() -> str:
    """Returns the text that ships.

    Raises:
        DataError: Its file is missing or damaged.
    """
    try:
        content = bz2.decompress(FILE.read_bytes())
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            f"{FILE} must be the text that comes with stalesim, got: {error}; install "
            "stalesim again"
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256:
        raise DataError(
            f"{FILE} must hold the text with the SHA-256 {SHA256}, got {found}; "
            "install stalesim again"
        )
    return content.decode("ascii")
