"""What is published of NUS-WIDE."""

from ...storage.published import Published, PublishedFile

HALVES = ("Train", "Test")
KINDS = ("CH", "CM55", "CORR", "EDH", "WT")

PUBLISHED = Published(
    origin="NUS-WIDE of the National University of Singapore (Chua et al., 2009)",
    licence="for research; its page states the terms",
    files=tuple(
        PublishedFile(name)
        for half in HALVES
        for name in (
            *(f"{half}_Normalized_{kind}.dat" for kind in KINDS),
            f"{half}_Tags1k.dat",
        )
    ),
    by_hand="download low-level features, tags and ground truth from the page of "
    "NUS-WIDE at lms.comp.nus.edu.sg, and unpack them; it publishes no checksums",
)
