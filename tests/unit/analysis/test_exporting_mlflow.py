import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from stalesim.analysis import exporting
from tests.unit.analysis.exported import ACCURACY, EPSILON, Exported

pytest.importorskip("sqlalchemy")
pytest.importorskip("alembic")

pytestmark = [
    # Not imported here, but by the export, which first switches its telemetry off.
    pytest.mark.skipif(find_spec("mlflow") is None, reason="mlflow is not installed"),
    # Of MLflow's own use of its database.
    pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SADeprecationWarning"),
]


def test_a_study_is_an_experiment_whose_steps_are_commits(tmp_path: Path) -> None:
    from mlflow.tracking import MlflowClient

    exporting.export(Exported(), "mlflow", tmp_path)
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("fake")
    runs = {r.info.run_name: r for r in client.search_runs([experiment.experiment_id])}
    assert sorted(runs) == ["0000-async-r0", "0001-step_size=0.2-r0"]
    run = runs["0000-async-r0"]
    assert run.info.status == "FINISHED"
    found = client.get_metric_history(run.info.run_id, "test_accuracy")
    points = sorted((m.step, m.timestamp, m.value) for m in found)
    steps = [(0, 0), (10, 1_000), (20, 2_000)]
    assert points == [(*s, v) for s, v in zip(steps, ACCURACY["async"], strict=True)]
    spent = client.get_metric_history(run.info.run_id, "epsilon_rdp")
    assert sorted(m.value for m in spent) == EPSILON
    assert run.data.metrics["time"] == 2
    assert run.data.metrics["final/staleness_mean"] == 2.6
    assert run.data.params["algorithm.step_size"] == "0.1"
    assert (run.data.tags["variant"], run.data.tags["seed"]) == ("async", "40")
    # An entry whose name MLflow does not take:
    odd = "clients.groups.slow phones, 10 %.number"
    assert odd not in run.data.params
    where = client.download_artifacts(run.info.run_id, "config.json")
    assert json.loads(Path(where).read_text())[odd] == 5
