import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from stalesim.simulator.extras.trackers import exporter
from tests.extras.trackers.exported import ACCURACY, EPSILON, Exported

pytest.importorskip("tensorboardX")


def events(folder: Path) -> Iterator[object]:
    """Yields the events of a folder, by tensorboardX's own messages.

    A record is its length, a checksum of that, the message, a checksum of that.
    """
    from tensorboardX.proto.event_pb2 import Event

    (path,) = folder.glob("events.out.*")
    data, place = path.read_bytes(), 0
    while place < len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        yield Event.FromString(data[place + 12 : place + 12 + length])
        place += 16 + length


def scalars(folder: Path) -> dict[str, list[tuple[float, int, float]]]:
    found: dict[str, list[tuple[float, int, float]]] = {}
    for event in events(folder):
        for value in event.summary.value:
            if value.HasField("simple_value"):
                point = (event.wall_time, event.step, value.simple_value)
                found.setdefault(value.tag, []).append(point)
    return found


def test_a_run_is_a_folder_of_scalars_at_commits_and_virtual_time(
    tmp_path: Path,
) -> None:
    exporter.export(Exported(), "tensorboard", tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["0000-async-r0", "0001-step_size=0.2-r0"]
    found = scalars(tmp_path / names[0])
    assert [point[:2] for point in found["test_accuracy"]] == [(0, 0), (1, 10), (2, 20)]
    measured = [point[2] for point in found["test_accuracy"]]
    assert measured == pytest.approx(ACCURACY["async"], rel=1e-6)
    assert [point[2] for point in found["epsilon_rdp"]] == EPSILON
    assert [point[2] for point in found["time"]] == [0, 1, 2]
    assert found["final/staleness_max"] == [(2, 20, 9)]
    assert "epsilon_rdp" not in scalars(tmp_path / names[1])


def test_the_scenario_stands_as_hyper_parameters(tmp_path: Path) -> None:
    from tensorboardX.proto.plugin_hparams_pb2 import HParamsPluginData

    exporter.export(Exported(), "tensorboard", tmp_path)
    summaries = [
        value
        for event in events(tmp_path / "0001-step_size=0.2-r0")
        for value in event.summary.value
    ]
    (start,) = (v for v in summaries if v.tag.endswith("session_start_info"))
    data = HParamsPluginData.FromString(start.metadata.plugin_data.content)
    told = data.session_start_info.hparams
    assert told["algorithm.step_size"].number_value == 0.2
    assert told["problem.shuffle"].bool_value is True
    assert told["algorithm.kind"].string_value == "vafl"
    texts = {v.tag: v.tensor.string_val for v in summaries if "text" in v.tag}
    # Markdown, in which an indented line is literal.
    assert texts["seed/text_summary"] == [b"    41"]


def test_tensorboard_reads_it(tmp_path: Path) -> None:
    reading = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    )
    exporter.export(Exported(), "tensorboard", tmp_path)
    read = reading.EventAccumulator(str(tmp_path / "0000-async-r0"))
    read.Reload()
    last = read.Scalars("test_accuracy")[-1]
    assert (last.wall_time, last.step) == (2, 20)
    assert last.value == pytest.approx(0.9, rel=1e-6)
    assert "_hparams_/session_start_info" in read.PluginTagToContent("hparams")
