"""Spoken digits: recordings in an archive, their spectra, pieces, damaged files."""

import io
import math
import tarfile
import wave
import zipfile
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from stalesim.simulator.extras.papers.data.spoken_digits import recordings as spectrum
from stalesim.simulator.extras.papers.data.spoken_digits.part import (
    ARCHIVE,
    SpokenDigits,
)
from stalesim.simulator.parts.errors import DataError, ScenarioError

RAW = SpokenDigits(scale="raw", frames=4)
SPEAKERS, DIGITS, INDICES = ("ada", "bob"), (0, 7), range(8)


def tone(hz: float, num_samples: int) -> np.ndarray:
    return 0.5 * np.sin(2 * np.pi * hz * np.arange(num_samples) / 8000)


def wav(samples: np.ndarray, rate: int = 8000, channels: int = 1) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(np.rint(samples * 2**15).astype("<i2").tobytes())
    return file.getvalue()


def recording(speaker: str, digit: int, index: int) -> np.ndarray:
    """Returns a tone whose height tells the digit, and whose length the index."""
    return tone(300 + 400 * digit, 200 + 80 * (8 + index))


def contents() -> dict[str, bytes]:
    return {
        f"recordings/{digit}_{speaker}_{index}.wav": wav(
            recording(speaker, digit, index)
        )
        for index in reversed(INDICES)
        for speaker in SPEAKERS
        for digit in DIGITS
    } | {"recordings/notes.txt": b"nothing"}


def write(root: Path, **changed: bytes) -> Path:
    path = root / "spoken_digits" / ARCHIVE
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (contents() | changed).items():
            archive.writestr(name, content)
    return path


def test_pieces(root: Path) -> None:
    path = write(root)
    data = RAW.make()
    assert data.name == "spoken_digits (other copy)"
    assert RAW.located_files() == [path]
    # Recording i has 9 + i frames, of which each piece takes 4.
    frames = {index: 9 + index for index in INDICES}
    pieces = [4 * sum(n // 4 for i, n in frames.items() if i in half)
              for half in (range(5, 8), range(5))]  # fmt: skip
    assert [len(data.y_train), len(data.y_test)] == pieces
    assert (data.x_train.shape[1], data.num_frames) == (4 * 120, 4)
    assert data.columns[39:41] == ("log_mel_39_frame_0", "delta_0_frame_0")
    assert data.columns[-1] == "delta_delta_39_frame_3"
    np.testing.assert_array_equal(data.y_train, data.y_train[:, [0] * 4])
    (found,) = data.groupings
    assert (found.column, found.values) == ("speaker", SPEAKERS)
    # Both say the same.
    assert np.bincount(found.of_row).tolist() == [pieces[0] // 2] * 2
    assert np.unique(data.y_test).tolist() == [*DIGITS]
    # The first test row is the beginning of 0_ada_0, whose features are known.
    static = spectrum.log_mel(np.rint(recording("ada", 0, 0) * 2**15) / 2**15)
    found = data.x_test[0].reshape(4, 120)
    np.testing.assert_allclose(found[:, :40], static[:4], atol=1e-5)
    wide = np.pad(static, ((2, 2), (0, 0)), mode="edge").astype(float)
    slope = np.stack(
        [
            sum(k * (wide[t + 2 + k] - wide[t + 2 - k]) for k in (1, 2)) / 10
            for t in range(9)
        ]
    )
    np.testing.assert_allclose(found[:, 40:80], slope[:4], atol=1e-4)


def test_digits_are_told_apart_by_their_spectra(root: Path) -> None:
    write(root)
    data = RAW.make()
    strongest = data.x_test.reshape(-1, 4, 120)[:, :, :40].argmax(axis=2)
    bands = spectrum.bands()
    hz = np.fft.rfftfreq(spectrum.POINTS, 1 / 8000)
    middle = hz[bands.argmax(axis=1)][strongest]
    np.testing.assert_allclose(middle, 300 + 400 * data.y_test, rtol=0.12)


def test_spectrum_by_its_definition() -> None:
    draw = np.random.default_rng(0)
    samples = draw.uniform(-1, 1, 200 + 80)
    found = spectrum.log_mel(samples)
    assert found.shape == (2, 40)
    emphasised = [samples[0] * 0.03]
    emphasised += [samples[i] - 0.97 * samples[i - 1] for i in range(1, 280)]
    part = [
        emphasised[80 + i] * (0.54 - 0.46 * math.cos(2 * math.pi * i / 199))
        for i in range(200)
    ]

    def mel(hz: float) -> float:
        return 2595 * math.log10(1 + hz / 700)

    step = (mel(4000) - mel(20)) / 41
    for band in (0, 20, 39):
        corners = [
            700 * (10 ** ((mel(20) + step * (band + i)) / 2595) - 1) for i in range(3)
        ]
        energy = 0.0
        for k in range(129):
            hz = k * 8000 / 256
            up = (hz - corners[0]) / (corners[1] - corners[0])
            down = (corners[2] - hz) / (corners[2] - corners[1])
            value = sum(
                x * complex(math.cos(a), -math.sin(a))
                for i, x in enumerate(part)
                for a in [2 * math.pi * k * i / 256]
            )
            energy += max(0.0, min(up, down)) * abs(value) ** 2
        assert found[1, band] == pytest.approx(math.log(energy), rel=1e-5)


def test_every_band_hears_something() -> None:
    assert (spectrum.bands().sum(axis=1) > 0).all()
    assert spectrum.num_frames(199) == 0
    assert spectrum.log_mel(np.zeros(199)).shape == (0, 40)
    silence = spectrum.log_mel(np.zeros(200))
    np.testing.assert_allclose(silence, math.log(1e-10), rtol=1e-6)


def test_too_short_recordings_are_left_out(root: Path) -> None:
    expected = len((write(root), RAW.make())[1].y_train)
    write(root, **{"recordings/3_ada_7.wav": wav(tone(500, 200 + 2 * 80))})
    data = RAW.make()
    assert len(data.y_train) == expected
    assert 3 not in data.y_train
    with pytest.raises(ScenarioError, match="frames must be at most 13, as the long"):
        SpokenDigits(frames=14).make()


def test_the_archive_of_github_is_read_alike(root: Path) -> None:
    write(root)
    expected = RAW.make()
    (root / "spoken_digits" / ARCHIVE).unlink()
    path = root / "free-spoken-digit-dataset-1.0.10.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in contents().items():
            info = tarfile.TarInfo(f"free-spoken-digit-dataset-1.0.10/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    data = RAW.make()
    np.testing.assert_array_equal(data.x_train, expected.x_train)
    np.testing.assert_array_equal(data.y_test, expected.y_test)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("recordings/0_ada_0.wav", b"RIFF", "0_ada_0.wav in .* must be a wav file"),
        (
            "recordings/0_ada_0.wav",
            wav(np.zeros(900), rate=16_000),
            "1 channel of 2 bytes at 8000 Hz, got 1 of 2 at 16000",
        ),
        ("recordings/0_ada_0.wav", wav(np.zeros(900), channels=2), "got 2 of 2 at"),
        (
            "recordings/0_ada_0.wav",
            wav(np.zeros(900))[:-100],
            "must have 1800 bytes of samples, got 1700",
        ),
        ("again/0_Ada_0.wav", wav(np.zeros(900)), "every recording once, got again/0_"),
    ],
)
def test_damaged_recordings(root: Path, name: str, content: bytes, says: str) -> None:
    write(root, **{name: content})
    with pytest.raises(DataError, match=says) as error:
        RAW.make()
    assert "\n" not in str(error.value)


def test_damaged_archives(root: Path) -> None:
    path = write(root)
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(DataError, match="must be a whole zip or tar archive, got: "):
        RAW.make()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "nothing")
    with pytest.raises(DataError, match=r"DIGIT_SPEAKER_INDEX\.wav, got none"):
        RAW.make()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("1_ada_9.wav", wav(np.zeros(900)))
    with pytest.raises(DataError, match="indices 0 to 4 and higher ones, got only one"):
        RAW.make()


def test_classes_cannot_be_chosen() -> None:
    with pytest.raises(ValidationError, match="must not be set for spoken_digits"):
        SpokenDigits(classes=(0, 1))
