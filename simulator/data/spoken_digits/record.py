"""What is published of the Free Spoken Digit Dataset."""

from ...storage.published import Published, PublishedFile

ARCHIVE = "recordings.zip"

PUBLISHED = Published(
    origin="github.com/Jakobovski/free-spoken-digit-dataset, version 1.0.10",
    licence="CC BY-SA 4.0",
    files=(
        # The folder of that version, zipped; of GitHub's own archive none is published.
        PublishedFile(ARCHIVE, "md5:99845cdc7b463021c013bbd014d991d8", 16_317_530),
    ),
    by_hand="download the zip of version 1.0.10 from "
    "github.com/Jakobovski/free-spoken-digit-dataset; no checksum of it is published",
)
