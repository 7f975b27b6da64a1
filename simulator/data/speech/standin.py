"""The stand-in of SWB300: frames emitted by a hidden Markov chain."""

import numpy as np
from jaxtyping import Float32, Int32

from ..base import Dataset, generator
from ..parts import Data
from .utterances import WIDTH, Utterances, dataset, deltas

STREAM = 9
"""Number of the random stream; see `seeds`."""
# Tuned once for the losses stated below, then frozen.
NUM_TRAIN, NUM_TEST = 176, 44
"""Numbers of utterances."""
SHORTEST, LONGEST = 150, 350
"""Numbers of frames of an utterance."""
NUM_STATES = 64
STAY = 0.75
"""Chance that the next frame has the same state."""
ONWARD = (0.7, 0.2, 0.1)
"""Chances of a state's three successors, given that it is left."""
RANK = 12
"""Dimensions of the sound that states differ in."""
BLUR = 1.6
"""Standard deviation of a frame's sound about its state's; states differ by 1."""
SPEAKERS = 8
"""Dimensions in which speakers differ."""
VOICE, NOISE = 0.5, 0.3
"""Standard deviations of a speaker's shift and of the noise of single features."""


def speech_standin(config: Data, frames: int) -> Dataset:
    """Returns about 2,000 and 500 rows, whose frames have 260 features and 64 states.

    States follow a sticky Markov chain: the next frame has the same state with chance
    0.75, else that of one of three successors. A state has a sound, twelve numbers, to
    which every frame adds noise; FMLLR and log-mel features are linear in that sound
    and in the speaker's voice, which the i-vector shows, the same in all frames of an
    utterance. Differences are taken of the log-mel features. So a frame alone leaves
    its state in doubt, and those around it help: a linear model of single frames
    reaches a test loss of 2.30 (accuracy 0.38); a bidirectional LSTM layer with a
    projection of 64, after Adam's best epoch, 1.46 with 32 cells (0.60) and 1.22 with
    64 (0.65).

    Arrays are the same for every seed and run; on another processor a feature may
    differ in its last digits, because sums are rounded differently.

    Raises:
        ScenarioError: The limit is too high.

    Source: recipe `speech-syn`: 21 frames of 260 features, of 64 states instead of
        32,000.
    """
    spoken = generate()
    ends = np.cumsum(spoken.lengths)
    border = int(ends[NUM_TRAIN - 1])
    parts = [
        Utterances(spoken.features[at], spoken.targets[at], spoken.lengths[of])
        for at, of in (
            (slice(border), slice(NUM_TRAIN)),
            (slice(border, None), slice(NUM_TRAIN, None)),
        )
    ]
    return dataset(config, frames, "speech-standin", parts[0], parts[1], NUM_STATES)


def generate() -> Utterances:
    """Returns all utterances, those for training first."""
    draw = generator(0, STREAM)
    num = NUM_TRAIN + NUM_TEST
    lengths = draw.integers(SHORTEST, LONGEST, num, np.int32, endpoint=True)
    targets = _states(draw, lengths)
    sounds = draw.standard_normal((NUM_STATES, RANK), np.float32)
    sound = sounds[targets] + np.float32(BLUR) * draw.standard_normal(
        (targets.size, RANK), np.float32
    )
    speaker = draw.standard_normal((num, SPEAKERS), np.float32)
    voice = np.repeat(speaker, lengths, axis=0)

    def mixed(of: Float32[np.ndarray, "n K"], width: int) -> np.ndarray:
        """Returns random combinations of columns, of the columns' size."""
        rank = of.shape[1]
        mixture = draw.standard_normal((rank, width), np.float32)
        return of @ (mixture / np.float32(rank**0.5))

    def noisy(clean: np.ndarray) -> np.ndarray:
        return clean + np.float32(NOISE) * draw.standard_normal(clean.shape, np.float32)

    features = np.empty((targets.size, WIDTH), np.float32)
    # What adapts FMLLR to the speaker is never perfect.
    shift = np.float32(VOICE) * voice
    features[:, :40] = noisy(mixed(sound, 40) + np.float32(0.3) * mixed(shift, 40))
    features[:, 40:140] = np.repeat(noisy(mixed(speaker, 100)), lengths, axis=0)
    features[:, 140:180] = noisy(mixed(sound, 40) + mixed(shift, 40))
    features[:, 180:220] = deltas(features[:, 140:180], lengths)
    features[:, 220:] = deltas(features[:, 180:220], lengths)
    return Utterances(features, targets, lengths)


def _states(
    draw: np.random.Generator, lengths: Int32[np.ndarray, " U"]
) -> Int32[np.ndarray, " T"]:
    """Returns the states of all frames, of all utterances at once, frame by frame."""
    # Successors are permutations of the states, so that all are equally frequent.
    following = np.stack([draw.permutation(NUM_STATES) for _ in ONWARD])
    state = draw.integers(0, NUM_STATES, lengths.size)
    states = np.empty((lengths.size, LONGEST), np.int32)
    for frame in range(LONGEST):
        states[:, frame] = state
        stays = draw.random(lengths.size) < STAY
        way = draw.choice(len(ONWARD), lengths.size, p=ONWARD)
        state = np.where(stays, state, following[way, state])
    return states[np.arange(LONGEST) < lengths[:, None]]
