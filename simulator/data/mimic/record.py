"""What is published of MIMIC-III, whose data are lent to persons."""

from ...storage.published import Published, PublishedFile

PUBLISHED = Published(
    origin="physionet.org/content/mimiciii (Johnson et al., 2016), by the scripts of "
    "Harutyunyan et al. (2019)",
    licence="PhysioNet Credentialed Health Data License 1.5.0: not to be shared",
    files=(
        PublishedFile("in-hospital-mortality/train/listfile.csv"),
        PublishedFile("in-hospital-mortality/test/listfile.csv"),
    ),
    by_hand="the data are credentialed: apply at physionet.org/content/mimiciii "
    "(a course and a signed agreement), then make the folder in-hospital-mortality by "
    "the scripts of github.com/YerevaNN/mimic3-benchmarks",
)
