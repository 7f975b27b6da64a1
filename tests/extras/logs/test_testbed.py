"""The log of a testbed is imported as its timeline."""

from pathlib import Path
from typing import Any

from stalesim.simulator.extras.logs.timelines import import_log
from tests.unit.testbed.test_runs import acted_out, applied, of_protocols


@of_protocols
def test_a_log_of_a_testbed_is_its_timeline(
    protocol: dict[str, Any], tmp_path: Path
) -> None:
    found = acted_out(tmp_path / "bed", protocol=protocol)
    again = import_log(tmp_path / "bed" / "log.csv", tmp_path / "again")
    jobs, clients = again.table("jobs"), again.table("clients").set_index("client")
    if "client_label" in clients:  # of numbers, without a client that ended no job
        jobs["client"] = jobs["client"].map(clients["client_label"].astype(int))
    used = jobs.loc[jobs["outcome"] == "APPLIED", ["commit", "read_version", "client"]]
    rows = sorted(used.astype(int).to_numpy().tolist())
    assert rows == applied(found.timeline)
