"""What is published of UCI's multiple features."""

from ...storage.published import Published, PublishedFile
from .views import VIEWS

NPZ = "mfeat.npz"

PUBLISHED = Published(
    origin="UCI 72, Multiple Features (Duin, 1998)",
    licence="CC BY 4.0",
    files=(
        *(PublishedFile(f"mfeat-{view}") for view in VIEWS),
        # The six files, one after the other as x, and y, as numpy.savez writes them.
        PublishedFile(NPZ, "md5:bdf1fe8473c8be1767e3c1e825acb05d", 2_502_174),
    ),
    by_hand="download the zip of archive.ics.uci.edu/dataset/72 and unpack its six "
    "files mfeat-fou, mfeat-fac, ...; UCI publishes no checksum",
)
