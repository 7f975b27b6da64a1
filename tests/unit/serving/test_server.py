import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from stalesim.analysis.serving import PageServer
from stalesim.simulator import studies
from stalesim.simulator.config.errors import UserError
from stalesim.simulator.trace import StudyError
from tests.unit.serving.served import (
    ask,
    piece,
    serving,
    write_half,
    write_rows,
    write_standing,
)
from tests.unit.studies.watched import WATCHED


def test_a_study_under_way_says_how_far_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    write_half(folder)
    write_standing(folder)
    write_rows(folder, half=True)
    with serving(folder) as server:
        _, page, headers = ask(server, "")
        assert "<title>&lt;half&gt;</title>" in page
        assert "&lt;b&gt;?" in page
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        said = piece(server, "progress")
        assert (
            "Under way: 1 of 4 runs have ended, 1 failed; 62 % is done; 40 commits/s; "
            "about 0:05:00 left." in said
        )
        assert 'value="62.50"' in said
        runs = piece(server, "runs")
        assert "1 under way, 1 failed, 1 done, 1 waiting." in runs
        assert "40 commits/s, about 0:00:10 left" in runs
        assert "because 1" in runs
        assert "because 0; 200 updates in 0:00:02" in runs
        curves = piece(server, "curves")
        assert curves.count("<img") == 1
        assert "dashed ones runs under way (1)" in curves
        assert "verdicts may change with the 3 to come" in piece(server, "claims")


def test_the_sentence_says_what_is_known(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    write_half(folder)
    with serving(folder) as server:
        assert "No sign of life yet" in piece(server, "progress")
        write_standing(folder, ago_s=300)
        assert "No sign of life for 0:05:00: its process" in piece(server, "progress")
        assert "2 not run" in piece(server, "runs")
        write_standing(folder, session=7)  # of another session
        assert "No sign of life yet" in piece(server, "progress")
    write_half(tmp_path / "i", interrupted=True)
    write_standing(tmp_path / "i")
    with serving(tmp_path / "i") as server:
        said = piece(server, "progress")
        assert "Interrupted: 1 of 4 runs have ended, 1 failed; stalesim resume" in said


def test_only_the_page_can_be_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    write_half(folder)
    (tmp_path / "secret").write_text("secret")
    absolute = str(tmp_path / "secret")
    with serving(folder) as server:
        host, port = server.address.removeprefix("http://").rstrip("/").split(":")
        assert host == "127.0.0.1"
        tries = (
            *("../secret", "..%2fsecret", "/../../secret", absolute, "manifest.json"),
            *(f"pieces/{absolute}", "pieces/../secret", "pieces/", "%2e%2e/secret"),
            *("style.css/../../secret", "\\..\\secret", "pieces/curves/../../secret"),
        )
        for path in tries:
            with socket.create_connection((host, int(port)), timeout=20) as raw:
                asked = f"GET /{path} HTTP/1.1\r\nHost: {host}:{port}\r\n"
                raw.sendall(f"{asked}Connection: close\r\n\r\n".encode())
                answer = b"".join(iter(lambda raw=raw: raw.recv(65536), b""))
            assert answer.startswith(b"HTTP/1.1 404 "), path
            assert b"there is no such page" in answer
        status, said, _ = ask(server, "", Host="evil.example:80")
        assert (status, said) == (403, "ask for 127.0.0.1 itself\n")
        request = urllib_request(server.address, "POST")
        assert request == 501
        assert urllib_request(server.address, "HEAD") == 200


def urllib_request(address: str, method: str) -> int:
    import urllib.error
    import urllib.request

    request = urllib.request.Request(address, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert answer.read() == b""
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_a_piece_is_sent_again_only_if_it_has_changed(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    write_half(folder)
    with serving(folder) as server:
        _, first, headers = ask(server, "pieces/runs")
        mark = headers["ETag"]
        status, again, _ = ask(server, "pieces/runs", **{"If-None-Match": mark})
        assert (status, again) == (304, "")
        write_standing(folder)
        status, now, _ = ask(server, "pieces/runs", **{"If-None-Match": mark})
        assert status == 200
        assert now != first


def test_nothing_in_the_folder_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    write_half(folder)
    write_standing(folder)

    def state() -> Any:
        return {p: p.stat().st_mtime_ns for p in (folder, *folder.rglob("*"))}

    before = state()
    names = ("progress", "runs", "curves", "claims", "staleness", "timeline")
    with serving(folder) as server:
        for name in names:
            piece(server, name)
    assert state() == before


def test_a_folder_that_is_half_written_or_gone_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    write_half(folder)
    with serving(folder) as server:
        (folder / "journal-1.log").write_bytes(b'0badc0de {"ends": {"2": {"st')
        assert "1 of 4 runs have ended" in piece(server, "progress")
        (part,) = (folder / "evaluations").iterdir()
        part.rename(part.with_suffix(".partial"))
        said = piece(server, "curves")
        assert "is missing; restore it from a copy" in said
        assert "Traceback" not in said
        part.with_suffix(".partial").rename(part)
        assert piece(server, "curves").count("<img") == 2
        (folder / "manifest.json").write_text('{"format": 2')
        assert "is not JSON" in piece(server, "progress")
        status, said, _ = ask(server, "")
        assert status == 503
        assert said.count("\n") == 1
        (folder / "manifest.json").unlink()
        assert "has no manifest.json" in piece(server, "runs")
    with pytest.raises(StudyError, match="must be the folder of a study"):
        PageServer(tmp_path / "none", 0)


def test_connections_that_ask_nothing_do_not_hold_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stalesim.analysis.serving.server.MOST_CONNECTIONS", 2)
    monkeypatch.setattr("stalesim.analysis.serving.server.PATIENCE_S", 0.1)
    write_half(tmp_path / "s")
    with serving(tmp_path / "s") as server:
        host, port = server.address.removeprefix("http://").rstrip("/").split(":")
        held = [socket.create_connection((host, int(port))) for _ in range(2)]
        try:
            time.sleep(0.5)
            before = threading.active_count()
            status, _, headers = ask(server, "style.css")
            assert (status, headers["Retry-After"]) == (503, "2")
            assert threading.active_count() <= before
        finally:
            for connection in held:
                connection.close()
        time.sleep(0.5)
        assert ask(server, "style.css")[0] == 200


def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    write_half(tmp_path / "s")
    with serving(tmp_path / "s") as server:
        port = int(server.address.rstrip("/").rsplit(":", 1)[1])
        with pytest.raises(UserError, match=f"--port must be a free port, got {port}"):
            PageServer(tmp_path / "s", port)


@pytest.mark.long
def test_a_study_is_followed_from_its_start_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Runs end within seconds here; the page is to see evaluations before that.
    monkeypatch.setattr("stalesim.simulator.trace.live.EVERY_S", 0.05)
    folder, seen = tmp_path / "s", dict[str, list[str]]()
    longer = {**WATCHED, "replicates": 2, "stop": {"commits": 30_000}}
    study = threading.Thread(target=lambda: studies.simulate(longer, folder))
    study.start()
    while not (folder / "manifest.json").exists():
        time.sleep(0.05)
    names = ("progress", "runs", "curves", "claims", "staleness", "timeline")
    with serving(folder) as server:
        while study.is_alive():
            for name in names:
                seen.setdefault(name, []).append(piece(server, name))
        study.join()
        last = {name: piece(server, name) for name in names}
        status, events, _ = ask(server, "timeline.json")
    assert any("Under way: 0 of 4 runs" in said for said in seen["progress"])
    assert any("commits/s; about" in said for said in seen["progress"])
    assert any("1 under way" in said for said in seen["runs"])
    assert any("done" in said and "waiting" in said for said in seen["runs"])
    assert any("so far: solid lines" in said for said in seen["curves"])
    every = [said for name in names for said in seen[name]]
    assert not [said for said in every if "must be as it was written" in said]
    assert "Complete: 4 of 4 runs have ended." in last["progress"]
    assert "4 done." in last["runs"]
    assert last["curves"].count("<img") == 2
    assert last["staleness"].count("<img") == 2
    assert last["timeline"].count("<img") == 1
    assert "not decidable" in last["claims"]  # with two replicates
    assert (status, '"traceEvents"' in events) == (200, True)


def test_the_command_says_where_and_ends_in_one_line(tmp_path: Path) -> None:
    write_half(tmp_path / "s")
    command = [sys.executable, "-m", "stalesim", "serve", "s", "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=tmp_path, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first.startswith("Serving s at http://127.0.0.1:")
        address = first.split()[3]
        status = urllib_request(address, "HEAD")
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=60)
    assert status == 200
    assert (out, errors) == ("No longer serving s\n", "")
    assert process.returncode == 0
