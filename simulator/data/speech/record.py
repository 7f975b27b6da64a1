"""What is published of SWB300, which is sold under a licence."""

from ...storage.published import Published, PublishedFile

PUBLISHED = Published(
    origin="Switchboard-1 Release 2 (LDC97S62), 300 hours of speech",
    licence="LDC user agreement: bought, not to be shared",
    files=(PublishedFile("speech.npz"),),
    by_hand="a licence is sold at catalog.ldc.upenn.edu/LDC97S62; make the features of "
    "frames by a toolkit and save them as `data: {kind: speech}` reads them",
)
