"""What is published of the PhysioNet challenge of 2012."""

from ...storage.published import Published, PublishedFile

SET_A, SET_B = "set-a.tar.gz", "set-b.tar.gz"
OUTCOMES_A, OUTCOMES_B = "Outcomes-a.txt", "Outcomes-b.txt"
ALL = "set-a-set-b-outcomes.tar.gz"
PAGE = "https://physionet.org/files/challenge-2012/1.0.0/"


def _file(name: str, size: int, sha256: str) -> PublishedFile:
    return PublishedFile(name, f"sha256:{sha256}", size, urls=(PAGE + name,))


PUBLISHED = Published(
    origin="physionet.org/content/challenge-2012/1.0.0 (Silva et al., 2012)",
    licence="ODC-By 1.0",
    files=(
        _file(
            SET_A,
            6_632_372,
            "8cb250f179cd0952b4b9ebcf8954b63d70383131670fac1cfee13deaa13ca920",
        ),
        _file(
            SET_B,
            6_652_690,
            "b1637a2a423a8e76f8f087896cfc5fdf28f88519e1f4e874fbda69b2a64dac30",
        ),
        _file(
            OUTCOMES_A,
            79_219,
            "2613ea60ccda29f87571a7d6b09ad130858a8ccd66325bd073365925026883c2",
        ),
        _file(
            OUTCOMES_B,
            79_149,
            "1305f29734da374a809483229a99f33a9230aa8d4fa74b1a2d6ad788136423d5",
        ),
        # The same files in one archive, whose lists of outcomes have these checksums.
        PublishedFile(ALL, "md5:85b1b2ac5757995435a42f8b9d2fd44d", 12_421_289),
    ),
)
