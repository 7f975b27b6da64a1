"""Folders as `save_to_disk` of Hugging Face's datasets writes them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa


def save(folder: Path, *tables: pa.Table, **more: Any) -> Path:
    """Writes an undivided set, a data file for each table; returns its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"data-{i:05d}-of-{len(tables):05d}.arrow" for i in range(len(tables))]
    for name, table in zip(names, tables, strict=True):
        with pa.ipc.new_stream(str(folder / name), table.schema) as stream:
            stream.write_table(table, max_chunksize=2)
    state = {"_data_files": [{"filename": name} for name in names], **more}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text("{}")
    return folder


def save_parts(folder: Path, **parts: pa.Table) -> Path:
    """Writes a set that is divided, such as in `train` and `test`."""
    for name, table in parts.items():
        save(folder / name, table)
    (folder / "dataset_dict.json").write_text(json.dumps({"splits": [*parts]}))
    return folder


def described(table: pa.Table, **types: str) -> pa.Table:
    """Adds what the library says of the types of columns, such as `ClassLabel`."""
    features = {name: {"_type": kind} for name, kind in types.items()}
    told = json.dumps({"info": {"features": features}})
    return table.replace_schema_metadata({"huggingface": told})
