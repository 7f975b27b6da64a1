import json
import struct
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from stalesim.simulator.extras.trackers import exporter
from tests.extras.trackers.exported import ACCURACY, EPSILON, Exported

BLOCK, HEADER = 32_768, 7
FULL, FIRST, LAST = 1, 2, 4


# Not imported here, but by the export, which first switches its error reports off.
pytestmark = pytest.mark.skipif(
    find_spec("wandb") is None, reason="wandb is not installed"
)


def told(path: Path) -> Iterator[Any]:
    """Yields the records of an offline run, by W&B's own messages.

    The file is a log in blocks: checksum, length and kind of a piece, then the piece;
    its own header is as long as that of a piece.
    """
    from wandb.proto.wandb_internal_pb2 import Record

    data, place, whole = path.read_bytes(), HEADER, b""
    while place + HEADER <= len(data):
        if BLOCK - place % BLOCK < HEADER:
            place += BLOCK - place % BLOCK
            continue
        _, length, kind = struct.unpack_from("<IHB", data, place)
        piece = data[place + HEADER : place + HEADER + length]
        whole = piece if kind in (FULL, FIRST) else whole + piece
        place += HEADER + length
        if kind in (FULL, LAST):
            yield Record.FromString(whole)


def as_dict(items: Any) -> dict[str, Any]:
    return {
        item.key or ".".join(item.nested_key): json.loads(item.value_json)
        for item in items
    }


def test_a_run_is_an_offline_run_over_commits(tmp_path: Path) -> None:
    exporter.export(Exported(), "wandb", tmp_path)
    runs = {}
    for path in tmp_path.glob("wandb/offline-run-*/*.wandb"):
        records = list(told(path))
        (about,) = (r.run for r in records if r.WhichOneof("record_type") == "run")
        runs[about.display_name] = about, records
    assert sorted(runs) == ["0000-async-r0", "0001-step_size=0.2-r0"]
    about, records = runs["0000-async-r0"]
    assert (about.project, about.run_group) == ("fake", "async")
    assert set(about.tags) == {"async", "replicate 0", "seed 40"}
    config = as_dict(about.config.update)
    assert config["algorithm.step_size"] == 0.1
    assert config["run.stop"] == "time"
    rows = [as_dict(r.history.item) for r in records if r.HasField("history")]
    assert [row["commits"] for row in rows] == [0, 10, 20]
    assert [row["time"] for row in rows] == [0, 1, 2]
    assert [row["test_accuracy"] for row in rows] == ACCURACY["async"]
    assert [row["epsilon_rdp"] for row in rows] == EPSILON
    metrics = [r.metric for r in records if r.HasField("metric")]
    assert any(m.glob_name == "*" and m.step_metric == "commits" for m in metrics)
    ends = [as_dict(r.summary.update) for r in records if r.HasField("summary")]
    assert {k: v for end in ends for k, v in end.items()}["final/staleness_max"] == 9
