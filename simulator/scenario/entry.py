"""One part that a scenario may name, and how its classes stand for all of a kind."""

from typing import Annotated, Any, NamedTuple

from pydantic import Discriminator, GetCoreSchemaHandler, Tag

from simulator.scenario.base import Config

TAGS = ("kind", "law")
"""Keys by which a scenario chooses a part."""
OPEN = "scipy"
"""Tag of the law that stands for every name that no other part has."""


class Entry(NamedTuple):
    """A part: what configures it, and what makes it.

    Attributes:
        config: the configuration class.
        factory: `"module:factory"`, imported only when the part is used.
        source: who brings it.
    """

    config: type[Config]
    factory: str
    source: str = "stalesim"


class Parts:
    """Stands in an annotation for all parts of a kind, whoever brings them.

    The union is made when a scenario is first read, not with the scenario's classes: a
    module that brings parts may therefore import anything of the simulator.

    Args:
        kind: a key of `simulator.scenario.catalogue.KINDS`.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def configs(self) -> tuple[type[Config], ...]:
        """Returns the configuration classes of all parts of the kind."""
        from simulator.scenario.catalogue import entries

        return tuple(entry.config for entry in entries(self.kind))

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> Any:
        """Returns pydantic's schema of the union."""
        del source
        return handler.generate_schema(_union(self.configs()))


def tag(config: type[Config]) -> str:
    """Returns the name by which a scenario chooses a part."""
    name = next((name for name in TAGS if name in config.model_fields), None)
    field = config.model_fields[name] if name else None
    return OPEN if field is None or field.is_required() else str(field.default)


def _union(configs: tuple[type[Config], ...]) -> Any:
    """Returns the union of some classes, told apart by their names."""
    names = {tag(config) for config in configs}

    def name_of(value: Any) -> str:
        law = getattr(value, "law", None)
        law = value.get("law") if isinstance(value, dict) else law
        return law if isinstance(law, str) and law in names else OPEN

    union: Any = None
    for config in configs:
        member = Annotated[config, Tag(tag(config))] if OPEN in names else config
        union = member if union is None else union | member
    return Annotated[union, Discriminator(name_of if OPEN in names else "kind")]
