"""Makes the recorded worlds `pai_job_1` to `pai_job_4` from Alibaba's tables.

    python docs/generators/recorded_pai.py FOLDER

FOLDER holds job_1_norm.csv to job_4_norm.csv of alibaba/clusterdata,
cluster-trace-gpu-v2020/mini-batch-time.
"""

import csv
import gzip
import hashlib
import sys
from pathlib import Path

MD5 = {
    1: "5eda723ed54896c8766679e25d219621",
    2: "10f7a04bb202be1177f741eb4cd77020",
    3: "420b0907dde1d9b38840a9ed0193f3d1",
    4: "c9ecb6f33f44ffb4a5e7b68f2adff0b8",
}
"""Checksums of the tables."""
MADE = Path(__file__).parents[2] / "simulator" / "world" / "recorded" / "pai"


def main(folder: Path) -> None:
    """Writes client, from 1, and time of each iteration, in their order."""
    for job, wanted in MD5.items():
        content = (folder / f"job_{job}_norm.csv").read_bytes()
        found = hashlib.md5(content, usedforsecurity=False).hexdigest()
        if found != wanted:
            raise SystemExit(f"job {job} must have the md5 {wanted}, got {found}")
        rows = list(csv.DictReader(content.decode().splitlines()))
        workers = sorted({int(row["worker"]) for row in rows})
        rows.sort(key=lambda row: (int(row["worker"]), int(row["time"])))
        lines = [
            f"{workers.index(int(row['worker'])) + 1},{row['batch_time_norm']}"
            for row in rows
        ]
        text = "\n".join(["client,time", *lines, ""])
        path = MADE / f"job_{job}.csv.gz"
        path.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
