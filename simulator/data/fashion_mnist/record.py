"""What is published of Fashion-MNIST."""

from ...storage.published import Published, PublishedFile

MIRRORS = (
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
)


def _file(name: str, size: int, md5: str, unpacked: str) -> PublishedFile:
    urls = tuple(mirror + name for mirror in MIRRORS)
    return PublishedFile(name, f"md5:{md5}", size, f"md5:{unpacked}", urls)


PUBLISHED = Published(
    origin="github.com/zalandoresearch/fashion-mnist (Xiao, Rasul and Vollgraf, 2017)",
    licence="MIT",
    files=(
        _file(
            "train-images-idx3-ubyte.gz",
            26_421_880,
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        ),
        _file(
            "train-labels-idx1-ubyte.gz",
            29_515,
            "25c81989df183df01b3e8a0aad5dffbe",
            "9018921c3c673c538a1fc5bad174d6f9",
        ),
        _file(
            "t10k-images-idx3-ubyte.gz",
            4_422_102,
            "bef4ecab320f06d8554ea6380940ec79",
            "8181f5470baa50b63fa0f6fddb340f0a",
        ),
        _file(
            "t10k-labels-idx1-ubyte.gz",
            5_148,
            "bb300cfdad3c16e7a12a480ee83cd310",
            "15d484375f8d13e6eb1aabb0c3f46965",
        ),
    ),
)
