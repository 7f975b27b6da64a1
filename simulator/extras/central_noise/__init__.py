"""Noise of the server on the sum of a commit, for central differential privacy.

`part` has the stage `noisy_mean`, `tree` the noise of DP-FTRL, and `secure_aggregation`
the cost of hiding all but the sum from the server. For studies of private learning.
"""

from ...parts.attached import Extra

EXTRA = Extra()
