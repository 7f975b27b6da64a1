"""What the terminal shows: text as it is, and interruptions that nobody can miss."""

import io
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pandas as pd
import pytest
from rich.table import Table

from stalesim.analysis.claims.findings import COLUMNS, sentences
from stalesim.simulator.cli import console, printing
from stalesim.simulator.cli.console import Terminal
from stalesim.simulator.parts.progress import Speed
from stalesim.simulator.scenario.study import expand
from stalesim.simulator.studies.planning import Task
from stalesim.simulator.studies.progress import StudyProgress
from tests.commands import ENVIRONMENT
from tests.support import scenario

HOSTILE = ("[/b]", "x[red]y", ":smile:", "\x1b[31mred", "\x07", "\u202eabc", "$x$")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    file = io.StringIO()
    found = Terminal(file=file, width=80, force_terminal=True, color_system="truecolor")
    monkeypatch.setattr(printing, "out", found)
    monkeypatch.setattr(printing, "err", found)
    return file


@pytest.mark.parametrize("text", HOSTILE)
def test_text_is_neither_markup_nor_an_order(text: str, terminal: io.StringIO) -> None:
    shown = text.encode("unicode_escape").decode()
    printing.out.say(text)
    assert terminal.getvalue() == f"{shown}\n"
    table = Table(text, title=text)
    table.add_row(text)
    printing.out.print(table)
    printing.show_table(text, pd.DataFrame({text: [text]}))
    claim = {
        "verdict": "holds",
        "at": "",
        "says": text,
        "claim": text,
        "measured": text,
    }
    claim |= {"origin": "paper", "replicates": 1, "why": text}
    printing.show_claims(pd.DataFrame([claim]))
    printing.show_verdicts(pd.DataFrame([claim | {"corrected": 0.5}]))
    said = terminal.getvalue()
    assert said.count(shown) == 13
    assert text == shown or text not in said


def shown_words(terminal: io.StringIO) -> list[str]:
    """Returns the words in a terminal, no line of which is too long."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()
    assert max(map(len, lines)) <= 80
    return [word for line in lines for word in line.split()]


def test_a_table_breaks_no_cell_and_is_divided_where_it_is_too_wide(
    terminal: io.StringIO,
) -> None:
    names = [f"{n} (slow-android)" for n in range(4)]
    measures = ("stale mean", "max", "utilisation", "available", "wait (s)", "uploads")
    frame = pd.DataFrame({"client": names, **dict.fromkeys(measures, "12 [4]")})
    printing.show_table("clients", frame)
    words = shown_words(terminal)
    for text in (*measures, *names, "[4]"):
        assert {*text.split()} <= {*words}
    assert "(continued)" not in words
    assert words.count("12") == 6 * 4
    wide = frame.assign(**dict.fromkeys(("incidents", "contributions"), "1"))
    printing.show_table("clients", wide)
    words = shown_words(terminal)
    assert words.count("(continued)") == 1
    assert words.count("(slow-android)") == 3 * 4  # it stands in both of the parts
    assert {"incidents", "client", "updates"} <= {*words}


def test_all_columns_that_name_a_row_stand_in_each_part(terminal: io.StringIO) -> None:
    names = {"clients": ["phones (30)"] * 2, "measure": ["stale mean", "utilisation"]}
    wide = dict.fromkeys(("mean", "min", "10 %", "50 %", "90 %"), "12.67 [4]")
    printing.show_table("clients", pd.DataFrame({**names, **wide}))
    words = shown_words(terminal)
    assert words.count("(continued)") == 1
    assert words.count("phones") == words.count("utilisation") * 2 == 4


def test_a_plan_has_a_line_for_each_variant(terminal: io.StringIO) -> None:
    runs = expand(scenario({"replicates": 3, "variants": {"[/a]": {}, "b": {}}}))
    tasks = [Task("batched", tuple(runs[:4])), Task("compiled", tuple(runs[4:5]))]
    printing.show_plan(runs[:5], tasks, (1, 2**20, 2**20))
    said = " ".join(shown_words(terminal))
    assert "variant points replicates runs mode [/a] 1 3 3 batched" in said
    assert "b 1 2 2 batched, compiled" in said
    said = " ".join(terminal.getvalue().split())
    assert "5 runs in 2 batches; nothing was run" in said
    assert "memory: about 402 MiB in 1 process; in each: program 400, data 1," in said
    terminal.truncate(0)
    printing.show_plan(runs[:1], tasks[1:], (1, 0, 0))
    assert "1 run in 1 batch; nothing" in " ".join(terminal.getvalue().split())


CALLBACK = """\
import gc, signal, sys, time
from stalesim.simulator.cli import console

signal.signal(signal.SIGINT, console.interrupt)
sys.unraisablehook = console.repeat_interruption
gc.callbacks.append(lambda *_: time.sleep(1.0))
print("ready", flush=True)
try:
    gc.collect()
    for _ in range(600):
        time.sleep(0.1)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_an_interruption_inside_of_a_callback_is_neither_lost_nor_printed(
    tmp_path: Path,
) -> None:
    script = tmp_path / "callback.py"
    script.write_text(CALLBACK, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, script], text=True, env=ENVIRONMENT,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert out == "interrupted\n"
    assert errors == ""


def test_letters_that_a_terminal_lacks_are_escapes() -> None:
    code = (
        "from stalesim.simulator.cli import console;"
        "console.accept_any_text();"
        "console.out.say('caf\\u00e9 \\u5feb')"
    )
    own = ENVIRONMENT | {"PYTHONIOENCODING": "latin-1"}
    call = [sys.executable, "-c", code]
    done = subprocess.run(call, capture_output=True, env=own, check=True)
    assert done.stdout == b"caf\xe9 \\u5feb\n"


def _mute(monkeypatch: pytest.MonkeyPatch, **options: bool) -> io.StringIO:
    file = io.StringIO()
    monkeypatch.setattr(console, "err", Terminal(file=file, width=200, **options))
    monkeypatch.setattr(console, "_interrupted", threading.Event())
    return file


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (0.5, "[/b]\\x1b[31m"),
        (StudyProgress(0.3, 4, 15, "[/b]async"), "4 of 15 runs (at [/b]async)"),
        (StudyProgress(0.4, 6, 15, "sync", failed=2), "6 of 15 runs, 2 failed (at sy"),
        (StudyProgress(0.5, 7, 15, "sync", at_most=True), "7 of at most 15 runs (at s"),
    ],
)
def test_the_bar_shows_any_name_and_counts_runs(
    now: float | StudyProgress, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _mute(monkeypatch, force_terminal=True)
    with console.progress("[/b]\x1b[31m") as hear:
        hear(now)
    assert said in file.getvalue()


def test_without_a_terminal_there_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, now = _mute(monkeypatch), [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    with console.progress("study") as hear:
        for second in range(100):
            now[0] = float(second)
            hear(StudyProgress(second / 100, second // 10, 10, "async"))
    assert file.getvalue().splitlines() == [
        "study: 30 %, 3 of 10 runs (at async), about 0:01:10 left",
        "study: 60 %, 6 of 10 runs (at async), about 0:00:40 left",
        "study: 90 %, 9 of 10 runs (at async), about 0:00:10 left",
    ]


def test_the_time_left_of_runs_that_may_prove_needless_is_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, now = _mute(monkeypatch), [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    with console.progress("study") as hear:
        for second in range(31):
            now[0] = float(second)
            hear(StudyProgress(second / 100, second // 10, 10, at_most=True))
    said = "study: 30 %, 3 of at most 10 runs, at most about 0:01:10 left\n"
    assert file.getvalue() == said


def test_the_time_left_is_told_once_it_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    speed = Speed()

    def left(second: float, fraction: float) -> str:
        now[0] = second
        return speed.words(StudyProgress(fraction, 0, 1))

    # A minute of compiling says nothing, nor do the first steps of a long run.
    assert left(0.0, 0.0) == ""
    assert left(60.0, 0.0001) == ""
    assert left(60.5, 0.0002) == ""
    assert left(70.0, 0.0101) == "about 0:16:30 left"
    assert left(110.0, 0.5001) == "about 0:00:50 left"
    assert left(700.0, 0.7) == ""  # all that was heard is long ago
    assert left(710.0, 0.8) == "about 0:00:20 left"
    assert left(720.0, 1.0) == ""


def test_speed_is_measured_a_few_times_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    speed = Speed()
    measured = []
    monkeypatch.setattr(speed, "_measure", lambda at: measured.append(at) or "")
    for step in range(1_001):
        now[0] = step / 1_000
        speed.words(StudyProgress(step / 1_000, 0, 1))
    assert 5 <= len(measured) <= 7
    assert measured[-1].fraction == 1


def test_the_bar_says_no_time_that_it_cannot_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, now = _mute(monkeypatch, force_terminal=True), [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    with console.progress("study") as hear:
        for second, fraction in ((0, 0.0), (1, 1e-6), (2, 2e-6), (30, 3e-6)):
            now[0] = float(second)
            hear(StudyProgress(fraction, 0, 2, "base"))
    said = file.getvalue()
    assert "of 2 runs" in said
    assert "left" not in said
    assert ":" not in said


def test_the_speed_is_that_of_the_last_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file, now = _mute(monkeypatch), [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with console.progress("study") as hear:
        for second in range(601):
            now[0] = float(second)
            made = 10 * min(second, 300) + 1000 * max(0, second - 300)
            hear(StudyProgress(second / 1e5, 0, 1, "base", made))
    lines = [line.split(", ")[1] for line in file.getvalue().splitlines()]
    assert lines[8:11] == [f"{n} commits/s in all" for n in ("10", "10", "109")]
    assert lines[-1] == "1,000 commits/s in all"


def test_a_single_run_and_a_download_are_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = _mute(monkeypatch)
    monkeypatch.setattr(console, "LINE_EVERY_S", 0.0)
    with console.progress("file") as hear:
        hear(0.0)
        hear(StudyProgress(1e-9, 0, 1, "base"))  # started, and nothing done yet
    assert file.getvalue() == "file: 0 %\nfile: 0 %\n"


@pytest.mark.parametrize("where", ["show_cursor", "push_render_hook", "set_live"])
def test_an_interruption_while_the_bar_starts_ends_in_one_line(
    where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = _mute(monkeypatch, force_terminal=True)

    def study() -> None:
        with (
            console.interruptible(tmp_path),
            console.progress("study") as hear,
            pytest.MonkeyPatch.context() as started,
        ):
            started.setattr(console.err, where, lambda *_: console.interrupt(15, None))
            hear(0.5)

    with pytest.raises(SystemExit) as end:
        study()
    assert end.value.code == console.INTERRUPTED
    assert "marked incomplete" in file.getvalue()


def test_an_error_that_follows_an_interruption_is_the_interruption(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _mute(monkeypatch)
    with pytest.raises(IndexError), console.interruptible(tmp_path):
        raise IndexError

    def study() -> None:
        with console.interruptible(tmp_path):
            try:
                console.interrupt(15, None)
            except KeyboardInterrupt as error:  # as a library does
                raise IndexError from error

    with pytest.raises(SystemExit) as end:
        study()
    assert end.value.code == console.INTERRUPTED


def test_an_interruption_says_whether_anything_was_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, words in (
        (tmp_path, "holds what was written"),
        (tmp_path / "none", "nothing had been written"),
    ):
        with pytest.raises(SystemExit), console.interruptible(folder):
            raise KeyboardInterrupt
        assert words in " ".join(capsys.readouterr().err.split())


def test_errors_of_threads_are_shown_unless_the_program_was_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[object] = []
    monkeypatch.setattr(threading, "__excepthook__", shown.append)
    monkeypatch.setattr(threading, "excepthook", console.forget_after_interruption)
    monkeypatch.setattr(console, "_interrupted", threading.Event())
    for _ in range(2):
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
        console._interrupted.set()
    assert len(shown) == 1


def test_verdicts_say_where_a_claim_is_from_only_if_claims_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A newcomer's claims were all followed by `(own)`, and p by nothing."""
    claim = {
        "verdict": "holds",
        "says": "a is faster",
        "at": "",
        "origin": "own",
        "claim": "a faster than b",
        "measured": "times faster: 2 [1, 3]",
        "replicates": 6,
        "why": "p = 0.03",
    }
    shown = _mute(monkeypatch)
    monkeypatch.setattr(printing, "out", Terminal(file=shown, width=200))
    printing.show_claims(pd.DataFrame([claim]))
    assert "holds: a is faster\n" in shown.getvalue()
    assert "p: exact sign test, corrected" in shown.getvalue()
    printing.show_claims(pd.DataFrame([claim, {**claim, "origin": "paper"}]))
    assert "holds: a is faster (own)\n" in shown.getvalue()


def test_claims_in_the_same_words_name_what_they_compare() -> None:
    claims = {
        "says": ["a wins", "a wins", "b"],
        "at": "",
        "claim": ["a, b", "a, c", "d"],
    }
    found = sentences(pd.DataFrame(claims | {"origin": "own"}))
    assert found == ["a wins (a, b)", "a wins (a, c)", "b"]
    assert sentences(pd.DataFrame(columns=pd.Index(COLUMNS))) == []


def test_reasons_of_verdicts_fill_lines(terminal: io.StringIO) -> None:
    claim = {"verdict": "holds", "at": "", "origin": "own", "replicates": 6}
    long = "asynchronous-with-a-bound is faster than the others " * 3
    claim |= dict.fromkeys(("says", "claim", "measured", "why"), long)
    printing.show_claims(pd.DataFrame([claim]))
    assert "asynchronous-with-a-bound" in shown_words(terminal)
    said = terminal.getvalue().splitlines()
    assert all(line.startswith("    async") or len(line) > 60 for line in said[3:4])
