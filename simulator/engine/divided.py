"""Kernels whose clients' work is apart from what becomes of it: for waves of rows."""

from abc import abstractmethod
from typing import Any, Generic, TypeVar

from jaxtyping import Array, Float, Key

from .client_work import Work
from .kernel import Event, Info, Kernel, ProblemT, StateT

GivenT = TypeVar("GivenT")
SentT = TypeVar("SentT")


class Divided(Kernel[ProblemT, StateT], Generic[ProblemT, StateT, GivenT, SentT]):
    """An update rule of two parts: the work of clients, and what becomes of it.

    Work depends only on what was read, on samples, and on what a client keeps, so that
    the work of rows that read nothing of each other may be done at once. What workers
    are given for it, and what they send, are trees of arrays `[W, ...]`.
    """

    def kept(self, state: StateT) -> Any:
        """Returns what clients keep from job to job, a tree of arrays: by default none.

        Then a client's work needs nothing of its work before.
        """

    @abstractmethod
    def opened(self, problem: ProblemT, state: StateT, event: Event) -> StateT:
        """Returns the state with the version before a row in its register."""

    @abstractmethod
    def given(self, state: StateT, event: Event) -> GivenT:
        """Returns what the workers of a row work with: a tree of arrays `[W, ...]`.

        The models that they have read, and what they keep from job to job.

        Args:
            state: As `contribute` takes it.
            event: The row.
        """

    @abstractmethod
    def work_inputs(
        self, problem: ProblemT, event: Event, given: GivenT
    ) -> tuple[Float[Array, "W ..."], Float[Array, ""]]:
        """Returns what a function of the user's makes gradients of, and by which steps.

        Args:
            problem: The problem.
            event: The row.
            given: What the workers work with.

        Returns:
            The models that were read, and the step size of local steps.
        """

    @abstractmethod
    def computed(
        self,
        problem: ProblemT,
        key: Key[Array, ""] | None,
        event: Event,
        given: GivenT,
        made: Work | None = None,
    ) -> SentT:
        """Returns what the workers of a row send, as `contribute` does.

        Args:
            problem: The problem.
            key: Key of the run; None where nothing is drawn.
            event: The row.
            given: What they work with.
            made: Their gradients, a `client_work.Work` of arrays `[W, ...]`, where a
                function of the user's has made them.
        """

    def contribute(
        self, problem: ProblemT, state: Any, event: Event, made: Work | None = None
    ) -> SentT:
        """Returns what the workers of a row send: a tree of arrays `[W, ...]`.

        Args:
            problem: The problem.
            state: State after `opened` of this row, or of one since which no register
                was written that this row reads.
            event: The row.
            made: As `computed` takes it.
        """
        return self.computed(problem, state.key, event, self.given(state, event), made)

    @abstractmethod
    def apply(
        self, problem: ProblemT, state: StateT, event: Event, sent: SentT
    ) -> tuple[StateT, Info]:
        """Returns the state after a row, and diagnostics, as `step` does.

        Args:
            problem: The problem.
            state: State after `opened` of this row.
            event: The row.
            sent: What its workers send, from `contribute`.
        """

    def step(
        self, problem: ProblemT, state: StateT, event: Event
    ) -> tuple[StateT, Info]:
        """Returns the state after a row, and diagnostics."""
        state = self.opened(problem, state, event)
        sent = self.contribute(problem, state, event)
        return self.apply(problem, state, event, sent)
