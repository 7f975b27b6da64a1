"""Utterances of speech, and their pieces of equal length."""

from typing import Annotated, NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Int, Int32, Shaped
from pydantic import Field, model_validator

from .....parts.base import LocatedError
from .....parts.errors import ScenarioError
from .....problem.data import base
from .....problem.data.base import Dataset
from .....problem.data.groups import grouping
from .....problem.data.parts import Data, Scale
from .....problem.data.split import divide, finished

FEATURES = (
    *base.counted("fmllr", 40),
    *base.counted("ivector", 100),
    *base.counted("log_mel", 40),
    *base.counted("delta", 40),
    *base.counted("delta_delta", 40),
)
"""Features of a frame: FMLLR, i-vector, log-mel, its first and second differences."""
WIDTH = len(FEATURES)


class FrameData(Data):
    """Common base of speech in frames, each of which has a class."""

    scale: Scale = "standard"
    """Scale by the statistics of a feature in all frames."""
    frames: Annotated[int, Field(ge=1, le=10_000)] = 21
    """Number of frames of a row."""

    @model_validator(mode="after")
    def _all_classes(self) -> "FrameData":
        if self.classes is not None:
            raise LocatedError(
                f"classes must not be set for {self.kind}, whose frames are never "
                f"without their neighbours; leave it out"
            )
        return self


class Utterances(NamedTuple):
    """Frames of all utterances, laid end to end.

    Attributes:
        features: Features of each of the `T` frames.
        targets: HMM state, or other class, of each frame, from 0.
        lengths: Number of frames of each of the `U` utterances, together `T`.
    """

    features: Float32[np.ndarray, "T F"]
    targets: Int[np.ndarray, " T"]
    lengths: Int[np.ndarray, " U"]

    def taken(self, kept: Bool[np.ndarray, " U"]) -> "Utterances":
        """Returns some of the utterances."""
        frames = np.repeat(kept, self.lengths)
        return Utterances(
            self.features[frames], self.targets[frames], self.lengths[kept]
        )


def cut(
    spoken: Utterances, frames: int
) -> tuple[Float32[np.ndarray, "N P"], Int[np.ndarray, "N L"], Int[np.ndarray, " N"]]:
    """Cuts utterances into pieces that do not overlap.

    The rest at an utterance's end is dropped: of n frames, n mod `frames`.

    Returns:
        Features of each piece, frame after frame; states of its frames; number of its
        utterance, from 0.
    """
    lengths = spoken.lengths.astype(np.int64)
    num = lengths // frames
    begin = np.cumsum(lengths) - lengths
    within = np.arange(num.sum()) - np.repeat(np.cumsum(num) - num, num)
    starts = np.repeat(begin, num) + frames * within
    index: Int[np.ndarray, "N L"] = starts[:, None] + np.arange(frames)
    x = spoken.features[index].reshape(len(index), -1)
    return x, spoken.targets[index], np.repeat(np.arange(lengths.size), num)


def dataset(
    config: FrameData,
    name: str,
    train: Utterances,
    test: Utterances | None,
    num_states: int,
    features: tuple[str, ...] = FEATURES,
    speakers: Shaped[np.ndarray, " _"] | None = None,
) -> Dataset:
    """Returns a data set whose rows are pieces of utterances.

    Args:
        config: Frames of a piece, scale, limit, split seed and test fraction.
        name: Name in tables and figures.
        train: Utterances for training, and without `test` also for testing.
        test: Utterances for testing; None takes a fraction of the others.
        num_states: Number of states, which count from 0.
        features: Names of the features of a frame.
        speakers: Speaker of each utterance of `train`, if they are known.

    Raises:
        ScenarioError: The limit, the test fraction or the number of frames is too high.
    """
    frames = config.frames
    longest = min(int(part.lengths.max()) for part in (train, test) if part is not None)
    if frames > longest:
        raise ScenarioError(
            f"problem.data.frames must be at most {longest}, as the longest utterance "
            f"of {name} has, got {frames}; lower it"
        )
    x, y, utterance = cut(train, frames)
    known = () if speakers is None else (grouping("speaker", speakers[utterance]),)
    if test is None:
        kept, tested = divide(config, utterance, "utterances")
        rows, others = (x[kept], y[kept]), (x[tested], y[tested])
        known = tuple(each.taken(kept) for each in known)
    else:
        rows, others = (x, y), cut(test, frames)[:2]
    return finished(
        config,
        name,
        rows,
        others,
        num_classes=num_states,
        columns=columns(frames, features),
        frames=frames,
        groupings=known,
    )


def columns(frames: int, features: tuple[str, ...]) -> tuple[str, ...]:
    """Returns `NAME_frame_T` for the features of all frames of a row."""
    return tuple(
        f"{name}_frame_{frame}" for frame in range(frames) for name in features
    )


def deltas(
    static: Float32[np.ndarray, "T C"], lengths: Int32[np.ndarray, " U"]
) -> Float32[np.ndarray, "T C"]:
    """Returns the slope of each coefficient over five frames, utterance by utterance.

    Beyond the ends of an utterance its first and last frame are repeated.

    Source: Young et al., The HTK Book (2006), equation 5.16, with a window of 2.
    """
    found = []
    for part in np.split(static, np.cumsum(lengths)[:-1]):
        wide = np.pad(part, ((2, 2), (0, 0)), mode="edge")
        near, far = wide[3:-1] - wide[1:-3], wide[4:] - wide[:-4]
        found.append((near + 2 * far) / np.float32(10))
    return np.concatenate(found)
