"""Noise of the server on the sum of a commit, for central differential privacy.

`part` has the stage `noisy_mean`, and `secure_aggregation` its cost of hiding all but
the sum from the server. For studies of private learning.
"""

from ...parts.attached import Extra

EXTRA = Extra()
