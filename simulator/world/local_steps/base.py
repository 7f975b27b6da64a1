"""What a rule of local steps is."""

from abc import abstractmethod
from typing import TYPE_CHECKING

from ...timeline import JobSteps
from ..answers import Asking

if TYPE_CHECKING:
    from ..world import World


class LocalStepsRule(Asking):
    """How the local steps of jobs change during a run: its options."""

    @abstractmethod
    def start(self, world: "World", steps: JobSteps) -> None:
        """Starts to change them.

        Args:
            world: World that is about to be played.
            steps: What is changed.
        """
