"""A study that takes some seconds, to be watched while it is run."""

from typing import Any

WATCHED: dict[str, Any] = {
    "name": "watched",
    "question": "How far is it?",
    "seed": 1,
    "problem": {
        "data": {"kind": "digits"},
        "partition": {"kind": "iid", "clients": 5},
    },
    "clients": {"compute": {"law": "expon"}},
    "protocol": {"kind": "asynchronous"},
    "algorithm": {"kind": "sgd", "step_size": 0.1, "batch": 8},
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
