"""A study that takes some seconds, to be watched while it is run."""

from typing import Any

from tests.unit.studies.small import SMALL

WATCHED: dict[str, Any] = SMALL | {
    "name": "watched",
    "question": "How far is it?",
    "variants": {
        "fast": {},
        "slow": {"clients": {"compute": {"law": "expon", "scale": 3}}},
    },
    "stop": {"commits": 80_000},
    "evaluate": {"every": {"commits": 250}},
    "engine": {"chunk": 200},
    "claims": [
        {
            "says": "those who compute faster reach it sooner",
            "origin": "own",
            "faster": "fast",
            "than": "slow",
            "to": {"test_accuracy": 0.9},
        }
    ],
}
