"""What is published of USPS, and a known copy with other pixel values."""

from ...storage.published import KnownCopy, Published, PublishedFile

PAGE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"

PUBLISHED = Published(
    origin="LIBSVM data page, after Hull (1994)",
    licence="none stated; made available by AT&T for research",
    files=(
        PublishedFile(
            "usps.bz2",
            "md5:ec16c51db3855ca6c91edd34d0e9b197",
            urls=(f"{PAGE}usps.bz2",),
        ),
        PublishedFile(
            "usps.t.bz2",
            "md5:8ea070ee2aca1ac39742fdd1ef5ed118",
            urls=(f"{PAGE}usps.t.bz2",),
        ),
    ),
    copies=(
        KnownCopy(
            "usps (zip)",
            "zip.train and zip.test of R's package ElemStatLearn, rewritten as text "
            "of the LIBSVM format",
            (
                "md5:20f008785c70c0f3a1b712bcab5c4115",
                "md5:e7a58aa0b6761b277064adff9a96a893",
            ),
        ),
    ),
)
