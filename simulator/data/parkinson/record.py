"""What is published of the Parkinson speech features."""

from ...storage.published import Published, PublishedFile

PUBLISHED = Published(
    origin="UCI 470, Parkinson's Disease Classification (Sakar et al., 2018)",
    licence="CC BY 4.0",
    files=(PublishedFile("pd_speech_features.csv"),),
    by_hand="download the zip of archive.ics.uci.edu/dataset/470 and unpack it; UCI "
    "publishes no checksum",
)
