"""How a class begins and ends: the next free port, a file of its own, the question before messages are forgotten."""

import asyncio
import builtins
import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import date

import pytest
from class_fixtures import make_message, make_room

from fedlab_nb import live
from fedlab_nb.errors import UsageError
from fedlab_nb.live import classroom
from fedlab_nb.live.classroom import (
    choose_file_to_keep_messages,
    save_class_as_new_npz_file,
    start_server,
    wait_for_end_of_class,
)
from fedlab_nb.live.classroom.rehearse import make_simulated_students

TODAY = date.today()


def test_a_second_class_takes_the_next_port(monkeypatch):
    async def work():
        first = start_server(make_room(), None, None)
        second = start_server(make_room(), None, None)
        try:
            assert second.port > first.port >= classroom.FIRST_PORT
            with pytest.raises(OSError):  # who asks for a port gets no other
                start_server(make_room(), None, first.port)
        finally:
            first.stop()
            second.stop()

    asyncio.run(work())


def test_a_class_that_goes_on_has_its_old_port(tmp_path):
    async def work():
        room = make_room(tmp_path / "class.jsonl")
        served = start_server(room, None, 0)
        room.store_port_in_file(served.port)
        served.stop()
        again = make_room(tmp_path / "class.jsonl")
        served_again = start_server(again, None, None)
        served_again.stop()
        assert served_again.port == served.port and served_again.address == served.address

    asyncio.run(work())


def test_two_classes_of_a_day_do_not_share_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def work():
        file = choose_file_to_keep_messages("")
        assert file.name == f"class-{TODAY}.jsonl"
        room = make_room(file)
        served = start_server(room, None, 0)
        room.store_port_in_file(served.port)
        assert choose_file_to_keep_messages("").name == f"class-{TODAY}-2.jsonl"
        with pytest.raises(UsageError, match=f"running at port {served.port}"):
            choose_file_to_keep_messages(str(file))
        served.stop()
        await asyncio.sleep(0.1)
        # the class has ended: the same command goes on with it
        assert choose_file_to_keep_messages("") == file

    asyncio.run(work())


def test_saving_takes_the_next_name_that_is_free(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    room = make_room()
    for seat in range(3):
        room.accept_message(make_message(seat))
    names = [save_class_as_new_npz_file(room).name, save_class_as_new_npz_file(room).name]
    assert names == [f"class-{TODAY}.npz", f"class-{TODAY}-2.npz"]


def end_class(room, answers, monkeypatch, *, is_terminal=True):
    """Press Ctrl-C and wait until the class has ended; returns the questions that were asked.

    answers: what is typed, one text for each question; None is the end of the input
    """
    remaining_answers = iter(answers)
    questions = []

    def answer(question):
        questions.append(question)
        text = next(remaining_answers)
        if text == "":  # the class goes on: press Ctrl-C once more
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        if text is None:
            raise EOFError
        return text

    monkeypatch.setattr(builtins, "input", answer)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: is_terminal, raising=False)

    async def work():
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        await asyncio.wait_for(wait_for_end_of_class(room), 10)

    asyncio.run(work())
    return questions


@pytest.mark.skipif(sys.platform == "win32", reason="no signals in an event loop")
@pytest.mark.parametrize(
    ("answers", "question_count", "is_saved"),
    [
        (["s"], 1, True),
        (["f"], 1, False),
        ([None], 1, True),  # Ctrl-D
        (["", "f"], 2, False),  # Enter goes on with the class
        (["what?", "s"], 2, True),
    ],
)
def test_ctrl_c_asks_before_it_forgets(answers, question_count, is_saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    room = make_room()
    room.accept_message(make_message(0))
    questions = end_class(room, answers, monkeypatch)
    assert len(questions) == question_count
    assert "1 message" in questions[0]
    assert (tmp_path / f"class-{TODAY}.npz").exists() is is_saved


@pytest.mark.skipif(sys.platform == "win32", reason="no signals in an event loop")
def test_nobody_is_asked_where_nothing_is_lost_or_nobody_is_there(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert end_class(make_room(), [], monkeypatch) == []
    rehearsal = make_room()
    student = next(make_simulated_students(rehearsal, 1))
    rehearsal.accept_message(student.text, student.seat)
    rehearsal.simulated.add(student.seat)
    assert end_class(rehearsal, [], monkeypatch) == []
    assert "Nobody but simulated students has sent" in capsys.readouterr().out
    kept = make_room(tmp_path / "kept.jsonl")
    kept.accept_message(make_message(0))
    assert end_class(kept, [], monkeypatch) == []
    assert not list(tmp_path.glob("*.npz"))
    room = make_room()
    room.accept_message(make_message(0))
    assert end_class(room, [], monkeypatch, is_terminal=False) == []
    assert (tmp_path / f"class-{TODAY}.npz").exists()
    secret = make_room()
    secret.accept_message(json.dumps(json.loads(make_message(0)) | {"keep": False}))
    assert end_class(secret, [], monkeypatch, is_terminal=False) == []
    assert "Nothing is saved" in capsys.readouterr().out
    assert len(list(tmp_path.glob("*.npz"))) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no signals in an event loop")
def test_a_class_that_is_ended_during_the_question_saves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    room = make_room()
    room.accept_message(make_message(0))
    never = threading.Event()
    monkeypatch.setattr(builtins, "input", lambda question: never.wait() and "f")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)

    async def work():
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
        await asyncio.wait_for(wait_for_end_of_class(room), 10)

    asyncio.run(work())  # the thread that asks is not waited for
    assert (tmp_path / f"class-{TODAY}.npz").exists()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM")
def test_a_rehearsal_ends_at_once(tmp_path):
    command = [sys.executable, "-m", "fedlab_nb", "class", "--no-browser", "--rehearse", "2"]
    environment = os.environ | {"PYTHONPATH": str(live.__file__).rsplit("/fedlab_nb/", 1)[0]}
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        for _ in range(4):
            process.stdout.readline()
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert not list(tmp_path.iterdir())
