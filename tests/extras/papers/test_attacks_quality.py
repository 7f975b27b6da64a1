"""Measures of images, against values by hand and a slow twin."""

import numpy as np
import pytest

from stalesim.simulator.extras.papers.attacks import quality


def _image(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((height, width))


def _slow_ssim(first: np.ndarray, second: np.ndarray, side: int) -> float:
    """Equations 13 to 16 of Wang et al., window by window."""
    offsets = np.arange(side) - side // 2
    window = np.exp(-(offsets[:, None] ** 2 + offsets[None] ** 2) / (2 * 1.5**2))
    window /= window.sum()
    found = []
    for i in range(first.shape[0] - side + 1):
        for j in range(first.shape[1] - side + 1):
            x, y = (a[i : i + side, j : j + side] for a in (first, second))
            mx, my = (window * x).sum(), (window * y).sum()
            vx, vy = (window * (x - mx) ** 2).sum(), (window * (y - my) ** 2).sum()
            cxy = (window * (x - mx) * (y - my)).sum()
            found.append(
                (2 * mx * my + 1e-4)
                * (2 * cxy + 9e-4)
                / ((mx**2 + my**2 + 1e-4) * (vx + vy + 9e-4))
            )
    return float(np.mean(found))


@pytest.mark.parametrize(
    ("height", "width", "side"), [(28, 28, 11), (22, 30, 11), (21, 30, 7), (8, 8, 7)]
)
def test_ssim_is_that_of_a_slow_twin(height: int, width: int, side: int) -> None:
    first = _image(height, width)
    second = 0.7 * first + 0.5 * _image(height, width, 1) - 0.2
    # float64 in both; differences of squares lose a few digits.
    expected = _slow_ssim(first, second, side)
    assert quality.ssim(first, second) == pytest.approx(expected, abs=1e-12)


def test_ssim_of_equal_even_and_stacked_images() -> None:
    first, second = _image(12, 12), _image(12, 12, 1)
    assert quality.ssim(first, first) == pytest.approx(1)
    even = quality.ssim(np.full((9, 9), 0.2), np.full((9, 9), 0.6))
    assert even == pytest.approx((2 * 0.12 + 1e-4) / (0.04 + 0.36 + 1e-4))
    both = quality.ssim(np.stack([first, first]), np.stack([first, second]))
    assert both == pytest.approx((1 + quality.ssim(first, second)) / 2)


def test_psnr_by_hand() -> None:
    true = _image(5, 6)
    assert quality.psnr(true, true + 0.1) == pytest.approx(20)
    assert quality.psnr(true, true) == np.inf
    assert np.isnan(quality.psnr(true, np.full_like(true, np.nan)))


def test_aligned_undoes_brightness_contrast_and_sign() -> None:
    true = _image(9, 9)
    np.testing.assert_allclose(quality.aligned(true, 3 - 40 * true), true, atol=1e-12)
    noisy = true + 0.3 * _image(9, 9, 2)
    slope, offset = np.polyfit(noisy.ravel(), true.ravel(), 1)
    np.testing.assert_allclose(quality.aligned(true, noisy), slope * noisy + offset)
    np.testing.assert_allclose(quality.aligned(true, np.ones((9, 9))), true.mean())
    grey = quality.psnr(true, np.full_like(true, true.mean()))
    assert quality.psnr(true, quality.aligned(true, _image(9, 9, 3))) >= grey


def test_correlation_is_pearsons_without_sign() -> None:
    true, found = _image(9, 9), _image(9, 9, 1)
    expected = abs(np.corrcoef(true.ravel(), found.ravel())[0, 1])
    assert quality.correlation(true, found) == pytest.approx(expected)
    assert quality.correlation(true, 0.1 - 2 * true) == pytest.approx(1)
    assert np.isnan(quality.correlation(true, np.full((9, 9), 0.1)))


def test_no_image_has_no_quality() -> None:
    measured = quality.compare(_image(9, 9), np.full((9, 9), np.nan))
    assert np.isnan([*measured.values()]).all()


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match=r"must have the shape \(9, 9\).*\(9, 8\)"):
        quality.psnr(_image(9, 9), _image(9, 8))
    with pytest.raises(ValueError, match=r"must be >= 7 pixels.*\(6, 9\)"):
        quality.ssim(_image(6, 9), _image(6, 9))
