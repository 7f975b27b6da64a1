"""Worlds by name, of theory or recorded: their settings of the clients."""

from typing import Literal

WorldName = Literal[
    "equal",
    "linear",
    "square_root",
    "one_slow",
    "bursts",
    "lomax",
    "universal",
    "pai_job_1",
    "pai_job_2",
    "pai_job_3",
    "pai_job_4",
    "bytedance_ar",
    "bytedance_se",
    "bytedance_st",
    "azure_vms",
    "flash_phones",
    "fivegophers",
    "steam_gpus",
]


def _replayed(path: str, column: str = "time") -> dict[str, object]:
    """Returns a law by which each client has the values of a table in their order."""
    return {
        "law": "empirical",
        "path": path,
        "column": column,
        "client": "client",
        "order": "replay",
    }


NAMED_WORLDS: dict[str, dict[str, object]] = {
    "equal": {"compute": {"law": "constant", "value": 1}},
    "linear": {"compute": {"law": "constant", "value": "m"}},
    "square_root": {"compute": {"law": "constant", "value": "sqrt(m)"}},
    "one_slow": {"compute": {"law": "constant", "value": "1 + 99*(m // M)"}},
    "bursts": {
        "compute": {"law": "constant", "value": 1},
        "slowdowns": [
            {
                "kind": "regime",
                "factor": 10,
                "normal": {"law": "expon", "scale": 50},
                "slow": {"law": "expon", "scale": 10},
            }
        ],
    },
    "lomax": {"compute": {"law": "lomax", "c": 1.1, "loc": 1}},
    "universal": {
        "compute": {"law": "constant", "value": 1},
        "power": {
            "times": [0, 30, 50],
            "values": [1, 0.1, 0],
            "period": 60,
            "phase": "60*m/M",
        },
    },
    **{
        f"pai_job_{job}": {
            "number": 10,
            "compute": _replayed(f"recorded/pai/job_{job}.csv.gz"),
        }
        for job in (1, 2, 3, 4)
    },
    **{
        f"bytedance_{job}": {
            "number": ranks,
            "compute": _replayed(f"recorded/bytedance/{job}.csv.gz"),
        }
        for job, ranks in (("ar", 16), ("se", 64), ("st", 8))
    },
    "azure_vms": {
        "compute": {
            "law": "empirical",
            "path": "recorded/azure/vms.csv.gz",
            "column": "time",
            "order": "resample",
        }
    },
    "flash_phones": {"compute": _replayed("recorded/flash/phones.csv.gz")},
    "steam_gpus": {"compute": _replayed("recorded/steam/gpus.csv.gz")},
    "fivegophers": {
        "number": 6,
        "compute": {"law": "constant", "value": 1},
        "download": {
            "bandwidth": [50386900, 31826100, 78618000, 72994400, 162809000, 109214000]
        },
        "slowdowns": [
            {
                "kind": "shared",
                "factor": _replayed("recorded/fivegophers/links.csv.gz", "factor"),
                "every": 5,
                "stages": ["download"],
            }
        ],
    },
}
"""Entries of `clients`, by the name of the world.

`equal`: a job takes 1 s. `linear`, `square_root`: client m takes m or sqrt(m) seconds.
`one_slow`: all take 1 s but the last client, which takes 100 s. `bursts`: 1 s, and ten
times as long in bursts of 10 s on average, every 60 s. `lomax`: 1 s and a Lomax time of
shape 1.1, whose mean is 10 s and whose variance is infinite. `universal`: 1 s at full
speed, which each client has for 30 of 60 s; for 20 s a job takes ten times as long, and
for 10 s nothing is computed; the clients' minutes begin one after the other. `RECORDED`
describes the others. Times of `pai_job_1` to `pai_job_4` were scaled to 0..1000, so
that the length of a second is unknown; a message of `fivegophers` has the speed of the
5 s in which it begins, and a job takes 1 s.

Source: Tyurin and Richtarik (2023), section 5; `lomax`: Maranjyan, Omar and Richtarik,
MindFlayer SGD (2025); `pai_job_1` to `pai_job_4`: alibaba/clusterdata,
cluster-trace-gpu-v2020/mini-batch-time, CC BY 4.0. SOURCE in each folder of `recorded`
has the origin of its measurements and their changes.
"""

RECORDED = {
    **{
        f"pai_job_{job}": (
            f"mini-batch times of ten workers, replayed, normalised (Alibaba PAI, job "
            f"{job}; CC BY 4.0)"
        )
        for job in (1, 2, 3, 4)
    },
    **{
        f"bytedance_{job}": (
            f"seconds that {ranks} ranks computed in a step, replayed (ByteDance, job "
            f"{job.upper()}; Apache-2.0)"
        )
        for job, ranks in (("ar", 16), ("se", 64), ("st", 8))
    },
    "azure_vms": (
        "machines of one size, 1 s at the median speed (Azure, D8s v5; CC BY 4.0)"
    ),
    "flash_phones": (
        "phones by their benchmarks, one a client, 1 s on the median one (FLASH; BSD-2)"
    ),
    "fivegophers": (
        "downloads over six 5G links that move, replayed (5Gophers 1.0; CC BY 4.0)"
    ),
    "steam_gpus": (
        "graphics cards by their shares, one a client, 1 s on the median one (Steam "
        "survey by BouquetFL; Apache-2.0)"
    ),
}
"""What recorded worlds are, with origin and licence."""


def with_named(data: dict[str, object]) -> dict[str, object]:
    """Returns clients with the entries of the world that they name.

    Args:
        data: The entry `clients` of a scenario, with the key `world`.

    Raises:
        ValueError: It sets the same entries itself.
    """
    named = NAMED_WORLDS.get(str(data["world"]))
    if named is None:
        return data
    for key, value in named.items():
        if key in data and not _same(data[key], value):
            raise ValueError(
                f"must have either world or {key}, which the world {data['world']!r} "
                "sets; remove one"
            )
    return {**data, **named}


def _same(given: object, named: object) -> bool:
    """Whether an entry is that of the world, as a scenario that was written has it."""
    if isinstance(named, dict):
        found = given if isinstance(given, dict) else vars(given)
        return all(_same(found.get(key), value) for key, value in named.items())
    if isinstance(named, list):
        return (
            isinstance(given, list | tuple)
            and len(given) == len(named)
            and all(map(_same, given, named))
        )
    return given == named
