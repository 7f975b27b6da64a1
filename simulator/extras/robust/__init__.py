"""Enemies among the clients, and servers that tolerate them.

For studies of Byzantine robustness. They are stages of a chain in two places:

- what enemies send: `enemies` (who they are; attacks on messages and on data);
- the aggregation: `aggregation`, from the median to centred clipping.
"""

from ...parts.attached import Extra

EXTRA = Extra()
