"""The errors that a user can cause: one line each, never a traceback."""

from .text import brief


class UserError(ValueError):
    """Something the user can put right; the command line prints it and exits 2.

    The message says in one line what is wrong, where, and what to do. Of a
    name or value that would fill the screen it has the beginning and the end.
    """

    def __str__(self) -> str:
        return brief(super().__str__())


class ScenarioError(UserError):
    """A scenario that cannot be simulated as it is written."""


class DataError(UserError):
    """A data file that is missing, damaged or of another format than it should be."""


class StudyError(UserError):
    """A study folder that cannot be read or written."""


class DamageError(StudyError):
    """A file of a study that is not what was written: nothing follows from it."""
