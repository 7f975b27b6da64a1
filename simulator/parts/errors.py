"""The errors that a user can cause: a line each, never a traceback."""

from .text import brief


class UserError(ValueError):
    """Something the user can put right; the command line prints it and exits 2.

    Each argument says in one line what is wrong, where, and what to do: mostly one, of
    a scenario with several mistakes one each. Of a name or value that would fill the
    screen it has the beginning and the end.
    """

    @property
    def lines(self) -> list[str]:
        """The message, line by line."""
        return [brief(str(each)) for each in self.args]

    def __str__(self) -> str:
        return "\n".join(self.lines)


class ScenarioError(UserError):
    """A scenario that cannot be simulated as it is written."""


class DataError(UserError):
    """A data file that is missing, damaged or of another format than it should be."""


class StudyError(UserError):
    """A study folder that cannot be read or written."""


class DamageError(StudyError):
    """A file of a study that is not what was written: nothing follows from it."""
