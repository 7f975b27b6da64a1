"""What is published of ModelNet40 in 12 views."""

from ...storage.published import Published, PublishedFile

PUBLISHED = Published(
    origin="modelnet.cs.princeton.edu (Wu et al., 2015), rendered from 12 sides by "
    "Su et al. (2018)",
    licence="for research, as the authors of its models allow",
    files=(  # of 148,000, the first
        PublishedFile(
            "modelnet40_images_new_12x/airplane/train/airplane_0001.obj.shaded_v001.png"
        ),
    ),
    by_hand="download modelnet40_images_new_12x, which the authors of MVCNN publish "
    "(supermoe.cs.umass.edu/shape_recog), and unpack it in the data folder",
)
