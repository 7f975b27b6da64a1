"""What is published of the credit card clients."""

from ...storage.published import Published, PublishedFile

PUBLISHED = Published(
    origin="UCI 350, Default of Credit Card Clients (Yeh and Lien, 2009)",
    licence="CC BY 4.0",
    files=(
        # Equal in every cell to UCI's xls file, without its column of ids.
        PublishedFile(
            "UCI_Credit_Card.csv", "md5:fba8a8b9af84956920c0349e62ecf8c6", 2_706_833
        ),
    ),
    by_hand="download the zip of archive.ics.uci.edu/dataset/350, unpack it, and save "
    "its xls file as csv; UCI publishes no checksum",
)
