"""What is published of the credit card clients."""

from ...storage.published import Published, PublishedFile

PUBLISHED = Published(
    origin="UCI 350, Default of Credit Card Clients (Yeh and Lien, 2009)",
    licence="CC BY 4.0",
    files=(
        PublishedFile("default of credit card clients.xls"),
        # Equal in every cell to the xls file, without its column of ids.
        PublishedFile(
            "UCI_Credit_Card.csv", "md5:fba8a8b9af84956920c0349e62ecf8c6", 2_706_833
        ),
    ),
    by_hand="download the zip of archive.ics.uci.edu/dataset/350 and unpack it; UCI "
    "publishes no checksum",
)
