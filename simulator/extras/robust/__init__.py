"""Enemies among the clients, and servers that tolerate them.

For studies of Byzantine robustness. They are stages of a chain in three places:

- what enemies send: `enemies` (who they are; attacks on messages), `poison` and
  `backdoor` (attacks on data; the metric `backdoor_accuracy`);
- what is received: `trusted`, filters of a server with rows of its own;
- the aggregation: `aggregation`, from the median to centred clipping.

What runs of them imports JAX: `running`, `overhearing`, and `gathering` of
aggregations.
"""

from ...config.attached import Extra

EXTRA = Extra(
    parts={
        "stages": (
            f"{__name__}.enemies:SignFlip",
            f"{__name__}.enemies:Alie",
            f"{__name__}.enemies:InnerProduct",
            f"{__name__}.poison:LabelFlip",
            f"{__name__}.backdoor:Backdoor",
            f"{__name__}.aggregation:CoordinateMedian",
            f"{__name__}.aggregation:TrimmedMean",
            f"{__name__}.aggregation:Krum",
            f"{__name__}.aggregation:GeometricMedian",
            f"{__name__}.aggregation:CentredClipping",
            f"{__name__}.trusted:AflGuard",
            f"{__name__}.trusted:ZenoPlusPlus",
        ),
        "metrics": (f"{__name__}.backdoor:BACKDOOR_ACCURACY",),
    }
)
