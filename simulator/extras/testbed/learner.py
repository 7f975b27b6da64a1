"""The server's model on a testbed: messages to and from clients."""

import numpy as np

from ...world.recorders.recorder import Recorder
from ...world.workload import Workload
from .wire import Envelope, Header, WireError

Sent = tuple[Header, bytes]
"""A message: its header and its body."""


class Learner:
    """No model: messages have its size, and nothing in them."""

    def __init__(self, workload: Workload) -> None:
        self._upload_bytes = workload.upload_bytes
        self._model = bytes(workload.download_bytes)

    @property
    def most(self) -> int:
        """Most bytes of a message."""
        return max(self._upload_bytes, len(self._model))

    def welcome(self) -> Sent:
        """Returns the data that a client needs to compute."""
        return {"type": "welcome", "upload_bytes": self._upload_bytes}, b""

    def follow(self, recorder: Recorder) -> None:
        """Applies the rows of a recorder from now on."""

    def read(self, client: int) -> Sent:
        """Returns the model as a client reads it now, with the data for its job."""
        return {}, self._model

    def arrive(self, client: int, message: Envelope) -> None:
        """Takes up a client's result.

        Raises:
            WireError: It does not fit the request.
        """
        if len(message.body) != self._upload_bytes:
            raise WireError("an update has another size")

    def catch_up(self) -> None:
        """Applies the rows recorded since."""

    def forget(self, client: int, job: int) -> None:
        """Forgets the message of a job that has ended."""

    def model(self) -> np.ndarray | None:
        """Returns the server's model, if there is one."""

    def measured(self) -> dict[str, float]:
        """Returns the metrics of the server's model."""
        return {}
