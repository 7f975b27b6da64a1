"""Speech from an npz file, and how it is cut."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from stalesim.simulator.extras.papers.data.speech.part import Speech
from stalesim.simulator.extras.papers.data.speech.utterances import (
    WIDTH,
    Utterances,
    cut,
    deltas,
)
from stalesim.simulator.parts.errors import DataError, ScenarioError

LENGTHS = [7, 2, 9, 6]
"""With three frames a row: 2, 0, 3 and 2 rows; 1, 2, 0 and 0 frames are dropped."""
RAW = Speech(scale="raw", frames=3)


def arrays(lengths: list[int] = LENGTHS, prefix: str = "") -> dict[str, np.ndarray]:
    total = sum(lengths)
    features = np.arange(total, dtype=np.float32)[:, None] + np.arange(
        WIDTH, dtype=np.float32
    ) / np.float32(1024)
    found = {
        "features": features,
        "targets": np.arange(total) % 5,
        "lengths": np.array(lengths),
    }
    return {prefix + name: array for name, array in found.items()}


def save(path: Path, contents: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **contents)
    return path


def test_cuts_within_utterances() -> None:
    given = arrays()
    spoken = Utterances(given["features"], given["targets"], given["lengths"])
    x, y, utterance = cut(spoken, 3)
    first = np.array([0, 3, 9, 12, 15, 18, 21])
    frames = x.reshape(7, 3, WIDTH)
    np.testing.assert_array_equal(frames[:, :, 0], first[:, None] + np.arange(3))
    np.testing.assert_array_equal(frames[2, 1], given["features"][10])
    np.testing.assert_array_equal(y, (first[:, None] + np.arange(3)) % 5)
    np.testing.assert_array_equal(utterance, [0, 0, 2, 2, 2, 3, 3])


@pytest.mark.parametrize("name", ["speech.npz", "SWB300/any.npz", "a/swb300.npz"])
def test_reads_and_keeps_utterances_whole(root: Path, name: str) -> None:
    save(root / name, arrays())
    data = RAW.make()
    assert data.name == Path(name).stem
    assert (data.num_classes, data.num_frames) == (5, 3)
    assert data.x_train.shape[1] == len(data.columns) == 3 * WIDTH
    assert data.columns[0] == "fmllr_0_frame_0"
    assert data.columns[WIDTH + 40] == "ivector_0_frame_1"
    assert data.columns[-1] == "delta_delta_39_frame_2"
    assert len(data.y_train) + len(data.y_test) == 7
    # One of the three utterances that have rows.
    starts = sorted(data.x_test[:, 0])
    assert starts in ([0, 3], [9, 12, 15], [18, 21])
    np.testing.assert_array_equal(data.y_test[:, 0], data.x_test[:, 0] % 5)


def test_test_utterances_of_their_own(root: Path) -> None:
    contents = arrays() | arrays([4, 3], "test_")
    contents["test_targets"][-1] = 8
    save(root / "speech.npz", contents)
    data = RAW.make()
    assert (data.y_train.shape, data.y_test.shape) == ((7, 3), (2, 3))
    assert data.num_classes == 9
    np.testing.assert_array_equal(data.x_test[:, 0], [0, 4])


def test_scale_and_limit_are_those_of_frames(root: Path) -> None:
    contents = arrays() | arrays([6], "test_")
    contents["features"][:, 1] = 5.0
    save(root / "speech.npz", contents)
    data = Speech(frames=3).make()
    frames = data.x_train.reshape(-1, WIDTH)
    np.testing.assert_allclose(frames.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(np.delete(frames.std(axis=0), 1), 1, rtol=1e-6)
    assert not frames[:, 1].any()
    few = Speech(frames=3, limit=4, scale="raw").make()
    assert few.y_train.shape == (4, 3)
    with pytest.raises(ScenarioError, match="at most the 7 training rows"):
        Speech(frames=3, limit=8).make()


def changed(**changes: Any) -> dict[str, Any]:
    both = arrays() | changes
    return {name: array for name, array in both.items() if array is not None}


NOT_FINITE = arrays()["features"].copy()
NOT_FINITE[3, 7] = np.nan
WRONG = {
    "hold the array lengths, got": changed(lengths=None),
    "hold the array test_targets, got": changed(
        test_features=arrays()["features"], test_lengths=[1]
    ),
    r"shapes \[T, 260\] and \[T\], .* got \(24, 259\)": changed(
        features=arrays()["features"][:, 1:]
    ),
    r"got \(24, 260\) and \(23,\)": changed(targets=np.zeros(23, int)),
    r"got \(24, 260\) and \(\)": changed(targets=np.array(3)),
    "neither empty": changed(
        features=np.zeros((0, WIDTH)), targets=np.zeros(0, int), lengths=[]
    ),
    "adds up to the 24 frames of features, got 23": changed(lengths=[20, 3]),
    r"adds up to the 24 frames of features, got \(1, 1\)": changed(lengths=[[24]]),
    "lengths .* whole numbers from 1, got some from 0": changed(lengths=[24, 0]),
    "lengths .* whole numbers from 1, got some of type float": changed(lengths=[24.0]),
    "an utterance of 3 frames, got at most 2": changed(lengths=[2] * 12),
    "targets .* whole numbers from 0, got some from -1": changed(
        targets=np.arange(24) - 1
    ),
    "targets .* of type float": changed(targets=np.zeros(24)),
    "two states or more .* got 0": changed(targets=np.zeros(24, int)),
    "without gaps, got 1000000": changed(targets=np.full(24, 10**6)),
    "got nan at frame 3, column 7": changed(features=NOT_FINITE),
    "hold real numbers, got complex": changed(features=NOT_FINITE.astype(complex)),
    "an npz file of plain arrays": changed(targets=np.array([None] * 24)),
}


@pytest.mark.parametrize("says", WRONG)
def test_wrong_files(root: Path, says: str) -> None:
    path = save(root / "speech.npz", WRONG[says])
    with pytest.raises(DataError, match=says) as error:
        RAW.make()
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


def test_damaged_files(root: Path) -> None:
    path = save(root / "speech.npz", arrays())
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(DataError, match="npz file of plain arrays, got"):
        RAW.make()


def test_deltas_are_slopes_within_utterances() -> None:
    lengths = np.array([7, 9], np.int32)
    static = np.random.default_rng(0).standard_normal((16, 3)).astype(np.float32)
    found = deltas(static, lengths)
    middle = (static[3:6] - static[1:4] + 2 * (static[4:7] - static[0:3])) / 10
    np.testing.assert_allclose(found[2:5], middle, atol=1e-6)
    alone = deltas(static[7:], lengths[1:])
    np.testing.assert_array_equal(found[7:], alone)


def test_classes_are_refused() -> None:
    with pytest.raises(ValidationError, match="classes must not be set for speech"):
        Speech(classes=(3, 4))
