"""Drawn data for trying things out: tables with views, images, series. No files.

`SyntheticLogistic` has labels of a planted model. One recipe makes the others: a row
has a class and hidden factors, normal about the means of it. The model sees mixtures of
the factors, with noise: columns of a table, pixels of an image, features of a frame.
Every view has its own mixtures, so that each contains some information on the class,
and all together contain more.
"""

from abc import ABC, abstractmethod
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float, Float32, Int, UInt8
from pydantic import Field, model_validator
from typing_extensions import override

from ...parts.base import LocatedError
from ...problem.data import base
from ...problem.data.base import Dataset, generator
from ...problem.data.parts import Data, Scale
from ...problem.data.split import divided

STREAM = 2
"""Number of the random stream of all three; see `base.generator`."""
FACTORS = 12
"""Number of hidden factors of a row."""
SPREAD = 0.7
"""Standard deviation of the classes' means in each factor, which is 1 in a class."""
NOISE = 0.5
"""Standard deviation of a column's noise, where its mixture of factors adds 1."""
STAY = 0.75
"""Chance that the next frame has the same class, where every frame has one."""
MOST_NUMBERS = 20_000_000
"""Largest number of values, and of hidden factors: 160 MB of either."""
MOST_COLUMNS = 10_000
"""Largest number of columns of a view, and of features of a frame."""
GREY, CONTRAST = 127.5, 40.0
"""Mean of the pixels, and grey levels of one standard deviation."""

LOGISTIC_STREAM = 5
"""Number of the random stream of `SyntheticLogistic`."""
NORM = 3.0
"""Euclidean norm of its planted weights: the logits' standard deviation."""
MOST_LOGISTIC = 50_000_000
"""Largest number of its values: 400 MB before they are rounded to float32."""
Draw = np.random.Generator


class Synthetic(Data, ABC):
    """Options of every drawn set."""

    num_samples: Annotated[int, Field(ge=2)] = 2000
    """Training and test rows together."""
    num_classes: Annotated[int, Field(ge=2, le=10_000)] = 2
    """Number of classes, all equally frequent."""
    data_seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the data, the same for all replicates."""

    @property
    @abstractmethod
    def num_values(self) -> int:
        """Number of values of a row, or of its hidden factors if they are more."""

    @model_validator(mode="after")
    def _fits(self) -> "Synthetic":
        if self.num_samples * self.num_values > MOST_NUMBERS:
            raise LocatedError(
                f"num_samples x values of a row must be at most {MOST_NUMBERS:,}, got "
                f"{self.num_samples:,} x {self.num_values:,}; lower one of them",
            )
        return self


class SyntheticTable(Synthetic):
    """Drawn table: noisy mixtures of the hidden factors of two or more classes."""

    kind: Literal["synthetic_table"] = "synthetic_table"
    views: Annotated[
        dict[str, Annotated[int, Field(ge=1, le=MOST_COLUMNS)]],
        Field(min_length=1, max_length=100),
    ] = {"a": 10, "b": 10}  # noqa: RUF012 (a field, which pydantic copies)
    """Number of columns of each view, in the order of the columns. The columns of a
    view are called NAME_0, NAME_1 and so on."""

    @property
    @override
    def num_values(self) -> int:
        return max(sum(self.views.values()), FACTORS)

    def make(self) -> Dataset:
        """Returns columns of mean 0 and a variance near 1.5, view after view."""
        draw = generator(self.data_seed, STREAM)
        y = _classes(draw, self.num_samples, self.num_classes)
        z = _factors(draw, y, self.num_classes)
        return divided(
            self,
            self.kind,
            (np.concatenate([_seen(draw, z, n) for n in self.views.values()], 1), y),
            num_classes=self.num_classes,
            columns=tuple(c for v, n in self.views.items() for c in base.counted(v, n)),
            views=tuple(view for view, n in self.views.items() for _ in range(n)),
        )


class SyntheticImages(Synthetic):
    """Drawn images: smooth waves, as strong as the hidden factors of ten classes."""

    kind: Literal["synthetic_images"] = "synthetic_images"
    num_classes: Annotated[int, Field(ge=2, le=10_000)] = 10
    """Number of classes, all equally frequent."""
    side: Annotated[int, Field(ge=4, le=224)] = 16
    """Height and width, pixels."""
    channels: Literal[1, 3] = 1
    """Number of planes: 1 for grey, 3 for colour."""
    views: Annotated[int, Field(ge=1, le=100)] = 1
    """Number of images of a row, each of which is a view."""
    scale: Scale = "unit"

    @property
    @override
    def num_values(self) -> int:
        return self.views * self.channels * self.side**2

    def make(self) -> Dataset:
        """Returns images with pixels of 0 to 255, all of a row one after the other."""
        draw = generator(self.data_seed, STREAM)
        y = _classes(draw, self.num_samples, self.num_classes)
        z = _factors(draw, y, self.num_classes)
        images = [self._images(draw, z) for _ in range(self.views)]
        planes = base.RGB if self.channels == 3 else ("pixel",)
        views = [f"view{view}" for view in range(1, self.views + 1)]
        one = base.pixels(self.side, self.side, planes)
        return divided(
            self,
            self.kind,
            (np.concatenate(images, axis=1), y),
            num_classes=self.num_classes,
            columns=tuple(f"{v}_{c}" for v in views for c in one) if views[1:] else one,
            views=tuple(view for view in views for _ in one) if views[1:] else (),
            largest=255.0,
        )

    def _images(
        self, draw: Draw, z: Float[np.ndarray, "N K"]
    ) -> UInt8[np.ndarray, "N P"]:
        axis = (np.arange(self.side) + 0.5) / self.side
        slope = draw.uniform(-3, 3, (2, FACTORS, 1, 1, 1))
        phase = draw.uniform(0, 2 * np.pi, (FACTORS, self.channels, 1, 1))
        angle = np.pi * (slope[0] * axis[:, None] + slope[1] * axis) + phase
        waves = np.sqrt(2 / FACTORS) * np.cos(angle).reshape(FACTORS, -1)
        x = (z @ waves).astype(np.float32)
        x += np.float32(NOISE) * draw.standard_normal(x.shape, np.float32)
        return np.rint((CONTRAST * x + GREY).clip(0, 255)).astype(np.uint8)


class SyntheticSeries(Synthetic):
    """Drawn series of frames, each of which shows the hidden factors with noise.

    A frame alone leaves its class in doubt, and those around it help.
    """

    kind: Literal["synthetic_series"] = "synthetic_series"
    frames: Annotated[int, Field(ge=1, le=10_000)] = 20
    """Number of frames of a row."""
    features: Annotated[int, Field(ge=1, le=MOST_COLUMNS)] = 10
    """Number of features of a frame, each of which is a view."""
    labels: Literal["row", "frame"] = "row"
    """`row`: one class a row. `frame`: a class for every frame, the same as in the
    frame before with chance 0.75, else any."""

    @model_validator(mode="after")
    def _all_classes(self) -> "SyntheticSeries":
        if self.labels == "frame" and self.classes is not None:
            raise LocatedError(
                "classes must not be set if every frame has a class, got "
                f"{self.classes}; leave it out",
            )
        return self

    @property
    @override
    def num_values(self) -> int:
        return self.frames * max(self.features, FACTORS)

    def make(self) -> Dataset:
        """Returns the features of each frame, one frame after the other.

        `unit` and `standard` scale a feature by the same factor in all frames.
        """
        draw = generator(self.data_seed, STREAM)
        y = _classes(draw, self.num_samples, self.num_classes)
        if self.labels == "frame":
            y = self._changing(draw, y)
            z = _factors(draw, y.reshape(-1), self.num_classes)
        else:
            z = _factors(draw, y, self.num_classes).repeat(self.frames, axis=0)
            z += draw.standard_normal(z.shape)
        x = _seen(draw, z, self.features).reshape(self.num_samples, -1)
        features = base.counted("feature", self.features)
        return divided(
            self,
            self.kind,
            (x, y),
            num_classes=self.num_classes,
            columns=tuple(
                f"{f}_frame_{t}" for t in range(self.frames) for f in features
            ),
            views=features * self.frames,
            frames=self.frames,
        )

    def _changing(
        self, draw: Draw, first: Int[np.ndarray, " N"]
    ) -> Int[np.ndarray, "N L"]:
        """Returns the classes of all frames, given those of the first."""
        y = draw.integers(0, self.num_classes, (first.size, self.frames))
        stays = draw.random(y.shape) < STAY
        y[:, 0] = first
        for frame in range(1, self.frames):
            y[:, frame] = np.where(stays[:, frame], y[:, frame - 1], y[:, frame])
        return y


def _classes(draw: Draw, num: int, num_classes: int) -> Int[np.ndarray, " N"]:
    return draw.permutation(np.arange(num) % num_classes)


def _factors(
    draw: Draw, y: Int[np.ndarray, " N"], num_classes: int
) -> Float[np.ndarray, "N K"]:
    means = SPREAD * draw.standard_normal((num_classes, FACTORS))
    return means[y] + draw.standard_normal((y.size, FACTORS))


def _seen(
    draw: Draw, z: Float[np.ndarray, "N K"], width: int
) -> Float32[np.ndarray, "N P"]:
    """Returns `width` mixtures of the factors, with noise."""
    mixture = draw.standard_normal((FACTORS, width)) / np.sqrt(FACTORS)
    x = (z @ mixture).astype(np.float32)
    return x + np.float32(NOISE) * draw.standard_normal(x.shape, np.float32)


class SyntheticLogistic(Data):
    """Gaussian features with labels drawn from a planted logistic model."""

    kind: Literal["synthetic_logistic"] = "synthetic_logistic"
    num_samples: Annotated[int, Field(ge=2)] = 1250
    """Training and test rows together."""
    num_features: Annotated[int, Field(ge=1)] = 20
    """Number of features of a row."""
    data_seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the data, the same for all replicates."""

    @model_validator(mode="after")
    def _in_memory(self) -> "SyntheticLogistic":
        if self.num_samples * self.num_features > MOST_LOGISTIC:
            raise LocatedError(
                f"num_samples x num_features must be at most {MOST_LOGISTIC:,}, got "
                f"{self.num_samples:,} x {self.num_features:,}; lower one of them",
            )
        return self

    def make(self) -> Dataset:
        """Returns standard normal features x and labels y ~ Bernoulli(sigmoid(x @ w)).

        The weights w have a uniformly random direction and the norm 3, with which the
        best classifier is right in 83 % of rows, whatever the number of features.
        """
        draw = generator(self.data_seed, LOGISTIC_STREAM)
        weights = draw.standard_normal(self.num_features)
        weights *= NORM / np.linalg.norm(weights)
        x = draw.standard_normal((self.num_samples, self.num_features))
        positive = 1 / (1 + np.exp(-(x @ weights)))
        y = draw.random(self.num_samples) < positive
        return divided(
            self,
            "synthetic_logistic",
            (x, y),
            num_classes=2,
            columns=base.numbered(self.num_features),
        )
