"""ModelNet40 in 12 views: made renderings."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from stalesim.simulator.catalogue.partitions.vertical import Views
from stalesim.simulator.extras.papers.data.modelnet40 import ROOT, ModelNet40
from stalesim.simulator.parts.errors import DataError

PNG = ModelNet40(scale="raw", side=4)
CLASSES = ("airplane", "bathtub")


def write(root: Path, num_train: int = 3) -> Path:
    """Writes objects whose pixels say class, half, object and view."""
    for number, name in enumerate(CLASSES):
        for half, count in (("train", num_train), ("test", 1)):
            folder = root / name / half
            folder.mkdir(parents=True)
            for one in range(count):
                for view in range(1, 13):
                    grey = 100 * number + 20 * one + view
                    path = folder / f"{name}_{one:04}.obj.shaded_v{view:03}.png"
                    Image.new("RGB", (8, 8), (grey, grey, grey)).save(path)
    return root


def test_objects_are_rows_of_twelve_images_in_order(root: Path) -> None:
    write(root / ROOT)
    data = PNG.make()
    assert (data.name, data.num_classes) == ("modelnet40", 2)
    assert (data.x_train.shape, data.x_test.shape) == ((6, 12 * 16), (2, 12 * 16))
    for x, y in ((data.x_train, data.y_train), (data.x_test, data.y_test)):
        images = x.reshape(-1, 12, 16)
        assert (images == images[:, :, :1]).all()
        np.testing.assert_array_equal(
            images[:, :, 0] - images[:, :1, 0], [range(12)] * len(x)
        )
        np.testing.assert_array_equal(images[:, 0, 0] // 100, y)
    parts = Views(parties=4).make(data)
    np.testing.assert_array_equal(np.stack(parts), np.arange(192).reshape(4, 48))
    assert len(PNG.located_files()) == 8 * 12


def test_colours_become_grey_and_pixels_means(root: Path) -> None:
    folder = write(root / ROOT) / "airplane" / "test"
    pixels = np.zeros((8, 8), np.uint8)
    pixels[0, :2] = 200
    Image.fromarray(pixels).save(folder / "airplane_0000.obj.shaded_v001.png")
    first = PNG.make().x_test[0, :16]
    assert first.tolist() == [100.0] + [0.0] * 15


def test_what_is_missing_or_damaged_is_named(root: Path) -> None:
    with pytest.raises(DataError, match=r"modelnet40_images_new_12x/CLASS/train"):
        PNG.make()
    folder = write(root / ROOT) / "bathtub" / "train"
    path = folder / "bathtub_0001.obj.shaded_v007.png"
    content = path.read_bytes()
    path.write_bytes(content[:40])
    with pytest.raises(DataError, match=r"shaded_v007.png must be a whole PNG file"):
        PNG.make()
    path.unlink()
    with pytest.raises(
        DataError, match="12 views of bathtub_0001, got none of number 7"
    ):
        PNG.make()
    path.write_bytes(content)
    with pytest.raises(DataError, match="at least 16 x 16 pixels, got 8 x 8"):
        ModelNet40(side=16).make()


def test_a_folder_without_objects(root: Path) -> None:
    for half in ("train", "test"):
        (root / ROOT / "chair" / half).mkdir(parents=True)
    with pytest.raises(DataError, match=r"must hold renderings named CLASS/train"):
        PNG.make()
