"""Noise of the server on the sum of a commit, for central differential privacy.

`part` has the stage `noisy_mean`, and `secure_aggregation` what it costs that the
server sees the sum alone. For studies of private learning.
"""

from ...parts.attached import Extra

EXTRA = Extra()
