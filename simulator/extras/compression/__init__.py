"""Messages that cost less, in either direction, for studies of slow links.

`stages` has the two stages of a chain and the base of compressors, `compressors` these.
A plug-in may add a compressor.
"""

from ...parts.attached import Extra

EXTRA = Extra(
    tables={
        "commits": {
            "compression_error": (
                *("float32", ""),
                "of messages: squared norm of the error over its own",
            ),
            "broadcast_error": ("float32", "", "the same of the model's changes"),
        }
    },
)
