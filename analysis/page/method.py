"""Description of the simulation, item by item of the checklist STRESS-DES.

Source: Monks, Currie, Onggo, Robinson, Kunc and Taylor, Strengthening the reporting of
empirical simulation studies: introducing the STRESS guidelines, Journal of Simulation
13 (1), 2018, doi 10.1080/17477778.2018.1442155; the items of STRESS-DES.
"""

from typing import Any

from . import design, execution
from .item import Section


def checklist(manifest: dict[str, Any]) -> list[Section]:
    """Returns the checklist, filled from the manifest of a study.

    Args:
        manifest: Manifest with at least one run that has ended.
    """
    return [
        Section("1. Objectives", design.objectives(manifest)),
        Section("2. Logic", design.logic(manifest)),
        Section("3. Data", design.data(manifest)),
        Section("4. Experimentation", execution.experimentation(manifest)),
        Section("5. Implementation", execution.implementation(manifest)),
        Section("6. Code access", [execution.access(manifest)]),
    ]
