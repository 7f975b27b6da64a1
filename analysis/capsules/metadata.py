"""The description of a capsule: `ro-crate-metadata.json`.

Source: Sefton et al., RO-Crate Metadata Specification 1.1 (2020), with actions as in
the Process Run Crate of Workflow Run RO-Crate.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...simulator.config.catalogue import parts
from ...simulator.config.parts import tag
from .contents import PackedFile, left_out

NAME = "ro-crate-metadata.json"
SPECIFICATION = "https://w3id.org/ro/crate/1.1"
CONTEXT = [
    f"{SPECIFICATION}/context",
    {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"},
]
NO_LICENCE = "The author has stated no licence for the scenario and the results."
SPDX = "https://spdx.org/licenses/"
LIBRARIES = ("python", "jax", "jaxlib", "numpy", "scipy", "simpy", "equinox")


def describe(
    manifest: Mapping[str, Any], entries: Sequence[PackedFile], licence: str | None
) -> str:
    """Returns the metadata of a capsule, as JSON-LD.

    Args:
        manifest: Manifest of the study.
        entries: Files of the capsule.
        licence: SPDX identifier of the licence of scenario and results, if stated.
    """
    data = _data(manifest, entries)
    software = _software(manifest)
    results = [{"@id": e.path} for e in entries if e.path.startswith("results/")]
    command = " ".join(map(str, manifest.get("command", ["not told"])))
    root: dict[str, Any] = {
        "@id": "./",
        "@type": "Dataset",
        "name": manifest["name"],
        "description": manifest.get("question") or f"Study {manifest['name']}",
        "datePublished": manifest["started"],
        "license": {"@id": f"{SPDX}{licence}"} if licence else NO_LICENCE,
        "hasPart": [{"@id": entry.path} for entry in entries],
        "mentions": [{"@id": "#run"}, *({"@id": each["@id"]} for each in data)],
    }
    graph = [
        {
            "@id": NAME,
            "@type": "CreativeWork",
            "conformsTo": {"@id": SPECIFICATION},
            "about": {"@id": "./"},
        },
        root,
        *map(_file, entries),
        {
            "@id": "#run",
            "@type": "CreateAction",
            "name": f"Simulation of {manifest['name']}",
            "description": command or "Simulated from Python",
            "startTime": manifest["started"],
            "instrument": {"@id": "#stalesim"},
            "object": [{"@id": "scenario.yaml"}, *({"@id": d["@id"]} for d in data)],
            "result": results,
        },
        *software,
        *data,
    ]
    if licence:
        about = {"@id": f"{SPDX}{licence}", "@type": "CreativeWork", "name": licence}
        graph.append(about)
    return json.dumps({"@context": CONTEXT, "@graph": graph}, indent=1) + "\n"


def _file(entry: PackedFile) -> dict[str, Any]:
    return {
        "@id": entry.path,
        "@type": "File",
        "name": entry.about,
        "encodingFormat": entry.media_type,
        "contentSize": str(len(entry.content)),
        "sha256": entry.sha256,
    }


def _software(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the program and the libraries with which the study was run."""
    environment = manifest.get("environment") or {}
    found = [name for name in LIBRARIES if environment.get(name)]
    program = {
        "@id": "#stalesim",
        "@type": "SoftwareApplication",
        "name": "stalesim",
        "softwareVersion": str(environment.get("stalesim", "unknown")),
        "license": {"@id": f"{SPDX}Apache-2.0"},
        "softwareRequirements": [{"@id": f"#{name}"} for name in found],
    }
    if manifest.get("commit"):
        changed = ", with local changes" if manifest.get("dirty") else ""
        program["description"] = f"git commit {manifest['commit']}{changed}"
    apache = {"@id": f"{SPDX}Apache-2.0", "@type": "CreativeWork", "name": "Apache-2.0"}
    return [
        program,
        apache,
        *(
            {
                "@id": f"#{name}",
                "@type": "SoftwareApplication",
                "name": name,
                "softwareVersion": str(environment[name]),
            }
            for name in found
        ),
    ]


def _data(
    manifest: Mapping[str, Any], entries: Sequence[PackedFile]
) -> list[dict[str, Any]]:
    """Returns the data sets and files that the study read, none of which is inside."""
    kinds = {_kind(run) for run in manifest["runs"]}
    known = {tag(part): getattr(part, "published", None) for part in parts("data")}
    found: list[dict[str, Any]] = []
    for kind in sorted(filter(None, kinds)):
        named = {
            run["dataset"]
            for run in manifest["runs"]
            if "dataset" in run and _kind(run) == kind
        }
        one: dict[str, Any] = {
            "@id": f"#data-{kind}",
            "@type": "CreativeWork",
            "name": ", ".join(sorted(named)) or kind,
        }
        if (published := known.get(kind)) is not None:
            one["description"] = published.origin
            one["license"] = published.licence
        else:
            one["description"] = "Data of the user's own, generated, or of a library"
        found.append(one)
    read = left_out(manifest, [entry.path for entry in entries])
    for number, (name, told) in enumerate(read.items()):
        found.append(
            {
                "@id": f"#input-{number}",
                "@type": "CreativeWork",
                "name": name,
                "description": "A file that the study read; not in the capsule",
                "sha256": told["sha256"],
            }
        )
    return found


def _kind(run: Mapping[str, Any]) -> str:
    problem = (run.get("scenario") or {}).get("problem") or {}
    return str((problem.get("data") or {}).get("kind") or "")
