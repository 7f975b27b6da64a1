"""The rule for names of studies, which are names of folders as well."""

import re
from typing import Annotated

from pydantic import Field

from .base import Rule

PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
RULE = "at most 100 letters, digits, dots, _ and -, beginning with a letter or digit"
StudyName = Annotated[str, Field(pattern=PATTERN), Rule(RULE, "vafl-mnist")]


def is_name(value: object) -> bool:
    """Says whether a value can be the name of a study."""
    return isinstance(value, str) and re.fullmatch(PATTERN[1:-1], value) is not None
