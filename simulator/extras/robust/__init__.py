"""Enemies among the clients, and servers that tolerate them.

For studies of Byzantine robustness. They are stages of a chain in three places:

- what enemies send: `enemies` (who they are; attacks on messages), `poison` and
  `backdoor` (attacks on data; the metric `backdoor_accuracy`);
- what is received: `trusted`, filters of a server with rows of its own;
- the aggregation: `aggregation`, from the median to centred clipping.
"""

from ...parts.attached import Extra

EXTRA = Extra()
