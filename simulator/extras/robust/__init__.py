"""Byzantine clients, and servers that tolerate them.

For studies of Byzantine robustness. They are stages of a chain in two places:

- attacks: `enemies` (the Byzantine clients; attacks on messages and on data);
- the aggregation: `aggregation`, from the median to centred clipping.
"""

from ...parts.attached import Extra

EXTRA = Extra()
