"""What several tests need, without JAX; `tests.runs` has what executes."""

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from stalesim.simulator.files.study import Writer, write_manifest
from stalesim.simulator.files.timeline import Jobs, Rows, StopReason
from stalesim.simulator.parts.stop import Stop
from stalesim.simulator.scenario.scenario import Scenario
from stalesim.simulator.scenario.study import merge
from stalesim.simulator.timelines.simulated import SimulatedTimeline
from stalesim.simulator.world.clients import Clients, Server
from stalesim.simulator.world.workload import Workload


def blocks(page: str, language: str) -> list[str]:
    """Returns the blocks of a language on a page of the documents."""
    text = Path(page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def table(module: str) -> Any:
    """Returns the cases of a module of tests, from the YAML file next to it.

    Args:
        module: File of the module, its `__file__`.
    """
    return yaml.safe_load(Path(module).with_suffix(".yaml").read_text("utf-8"))


def of_extras(table: str) -> dict[str, Any]:
    """Returns the entries that extras add to a table of tests, by their names.

    Args:
        table: Name of a mapping in `tests/extras/NAME/cases.py`; not all have it.
    """
    found: dict[str, Any] = {}
    for path in sorted((Path(__file__).parent / "extras").glob("*/cases.py")):
        module = import_module(f"tests.extras.{path.parent.name}.cases")
        found |= getattr(module, table, {})
    return found


def played(
    protocol: Any,
    clients: Clients | Mapping[str, Any] | None,
    num_clients: int,
    seed: int = 1,
    workload: Workload | None = None,
    server: Server | None = None,
    **stop: Any,
) -> SimulatedTimeline:
    """Returns a timeline, of messages that weigh nothing in particular by default."""
    made = Clients.model_validate(clients) if isinstance(clients, Mapping) else clients
    work, at = workload or Workload(4, 4, num_clients), server or Server()
    return SimulatedTimeline(
        made, protocol, num_clients, seed, Stop(**stop), work, server=at
    )


def everything(
    plan: SimulatedTimeline, chunk: int = 4096
) -> tuple[Rows, Jobs, StopReason | None]:
    """Returns all rows and jobs of a timeline, and why it ended."""
    chunks = list(plan.chunks(chunk))
    assert all(c.stop is None for c in chunks[:-1])
    rows = Rows(*map(np.concatenate, zip(*(c.rows for c in chunks), strict=True)))
    jobs = Jobs(*map(np.concatenate, zip(*(c.jobs for c in chunks), strict=True)))
    return rows, jobs, chunks[-1].stop


VAFL: dict[str, Any] = {
    "name": "test",
    "problem": {
        "data": {"kind": "breast_cancer", "scale": "standard"},
        "partition": {"kind": "vertical", "parties": 4},
        "l2": 0.001,
    },
    "clients": {
        "compute": {
            "law": "poisson",
            "mu": "2*m",
            "scale": "1/(2*M)",
            "shift": 1e-6,
        }
    },
    "protocol": {"kind": "asynchronous"},
    "algorithm": {"kind": "vafl", "step_size": 0.2, "batch": 17, "upload": "batch"},
    "stop": {"commits": 200},
    "evaluate": {"every": {"commits": 50}},
    "engine": {"chunk": 64},
}
"""A small VAFL study: 17 does not divide 455, nor do 4 parties divide 30 columns."""

SGD: dict[str, Any] = {
    "problem": {
        "data": {"kind": "digits"},
        "partition": {"kind": "iid", "clients": 5},
        "l2": 0.001,
    },
    "algorithm": {"kind": "sgd", "step_size": 0.3, "batch": 11},
}


def scenario(*changes: dict[str, Any]) -> Scenario:
    """Returns the small study with entries replaced.

    Raises:
        pydantic.ValidationError: It makes no sense; `read` of a file raises a
            ScenarioError.
    """
    tree = VAFL
    for change in changes:
        tree = merge(tree, change)
    return Scenario.model_validate(tree)


class Memory:
    """Keeps tables in memory; stands for a trace's writer."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, Any]]] = {}

    def append(self, table: str, columns: dict[str, Any]) -> None:
        self.tables.setdefault(table, []).append(columns)

    def column(self, table: str, name: str, run: int = 0) -> np.ndarray:
        parts = self.tables.get(table, [])
        values = [np.asarray(p[name])[p["run"] == run] for p in parts if name in p]
        return np.concatenate(values) if values else np.zeros(0)


def write_study(
    folder: Path, manifest: dict[str, Any], tables: dict[str, dict[str, Any]]
) -> None:
    """Writes tables and a manifest as the folder of a study.

    Args:
        folder: that is made.
        manifest: what there is to say; what every study has is added.
        tables: columns of each table.
    """
    folder.mkdir()
    writer = Writer(folder, "00000")
    for name, columns in tables.items():
        writer.append(name, columns)
    writer.flush()
    for run in manifest["runs"]:
        defaults = {"variant": run["label"], "parameters": {}, "seed": 0}
        defaults |= {"stop_reason": "", "scenario": {}}
        run |= {key: value for key, value in defaults.items() if key not in run}
        if run["stop"] not in ("failed", "incomplete"):
            run["rows"] = writer.rows.get(run["run"], {})
    made = {"status": "complete", "session": 1, "scenario": {}, "environment": {}}
    write_manifest(folder, made | manifest | {"parts": writer.parts})
