"""What a class keeps in its own file: nothing that a phone was told has arrived is lost, whatever ends the class."""

import errno
import json
import os
import sys

import pytest
from class_fixtures import make_joker, make_message, make_room

from fedlab_nb.errors import UsageError
from fedlab_nb.live.classroom.journal import Journal


@pytest.fixture
def file(tmp_path):
    return tmp_path / "class.jsonl"


def read_lines(file):
    return file.read_text("utf-8").splitlines()


def test_a_message_is_appended_and_nothing_before_it_is_written_again(file):
    room = make_room(file)
    for seat in range(3):
        before = file.read_bytes()
        inode = file.stat().st_ino
        text = room.accept_message(make_message(seat), seat).text
        after = file.read_bytes()
        assert after == before + text.encode() + b"\n"
        assert sys.platform == "win32" or file.stat().st_ino == inode


def test_a_killed_class_goes_on_with_all_that_happened(file):
    """The file is as it is at any moment: nothing is written when the class ends."""
    room = make_room(file)
    for seat in range(4):
        room.accept_message(make_message(seat), seat)
    room.store_that_seat_is_simulated(3)
    room.conductor.begin_step("reveal", 0.0)
    room.append_progress_to_file()
    room.store_guess(0, "reveal", 1)
    room.store_guess(0, "reveal", 3)
    room.store_guess(2, "reveal", 0)
    seat, text = make_joker(room)
    room.conductor.begin_step("joker", 0.0)
    room.add_malicious_message(text, seat)
    room.conductor.show_result()
    room.append_progress_to_file()
    again = make_room(file)
    assert [m.text for m in again.messages.values()] == [m.text for m in room.messages.values()]
    assert [m.size for m in again.messages.values()] == [m.size for m in room.messages.values()]
    assert again.joker == seat and again.simulated == {3, seat}
    assert again.before == room.before and again.before
    assert again.conductor.step.name == "joker" and again.conductor.is_result_shown("joker")
    assert again.conductor.guesses == {"reveal": {0: 3, 2: 0}}
    assert make_room(file).about == room.about  # and once more


@pytest.mark.parametrize("cut", [1, 40, 2000])
def test_a_line_that_was_being_written_when_the_class_was_killed_is_left_out(cut, file):
    """Its phone has no answer yet, and sends again."""
    room = make_room(file)
    room.accept_message(make_message(0), 0)
    whole = file.read_bytes()
    text = room.accept_message(make_message(1), 1).text
    file.write_bytes(whole + text.encode()[:cut])
    again = make_room(file)
    assert list(again.messages) == [0]
    again.accept_message(text, 1)
    assert list(make_room(file).messages) == [0, 1]


def test_a_line_that_was_whole_but_for_its_end_counts(file):
    room = make_room(file)
    room.accept_message(make_message(0), 0)
    file.write_bytes(file.read_bytes().rstrip(b"\n"))
    again = make_room(file)
    again.accept_message(make_message(1), 1)
    assert list(make_room(file).messages) == [0, 1]


def test_who_is_forgotten_leaves_the_file(file):
    room = make_room(file)
    for seat in range(3):
        room.accept_message(make_message(seat), seat)
    secret = json.loads(room.messages[1].text)["sums"]
    room.conductor.begin_step("reveal", 0.0)
    room.store_guess(1, "reveal", 2)
    room.forget_message(1)
    assert secret not in file.read_text("utf-8")
    again = make_room(file)
    assert list(again.messages) == [0, 2] and again.conductor.guesses == {"reveal": {}}
    assert again.effect["office"] == "B"


def test_a_message_that_cannot_be_kept_has_not_arrived(file, monkeypatch):
    """A disk that is full after some bytes leaves the file as it was; the same message is taken later."""
    room = make_room(file)
    room.accept_message(make_message(0), 0)
    before = file.read_bytes()
    version = room.version
    path_open = type(file).open

    class FileOnFullDisk:
        """A file that writes at most 100 bytes of what it is given."""

        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def write(self, data):
            return self.file.write(data[:100])

        def __getattr__(self, name):
            return getattr(self.file, name)

    def open_on_full_disk(path, mode="r", *arguments, **options):
        opened = path_open(path, mode, *arguments, **options)
        return FileOnFullDisk(opened) if mode == "r+b" else opened

    monkeypatch.setattr(type(file), "open", open_on_full_disk)
    with pytest.raises(UsageError, match=r"cannot write to class\.jsonl .*Tell the teacher"):
        room.accept_message(make_message(1), 1)
    assert file.read_bytes() == before
    assert room.version == version
    assert list(room.messages) == [0]
    monkeypatch.undo()
    room.accept_message(make_message(1), 1)
    assert list(make_room(file).messages) == [0, 1]


def test_who_is_forgotten_on_a_full_disk_is_told_what_is_left(file, monkeypatch):
    room = make_room(file)
    for seat in range(2):
        room.accept_message(make_message(seat), seat)

    def fail(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Journal, "replace_all_lines", fail)
    for _ in range(2):  # asked again, it does not say that all is well
        with pytest.raises(UsageError, match="still in the teacher's file"):
            room.forget_message(1)
        assert list(room.messages) == [0]
    monkeypatch.undo()
    assert room.forget_message(1) is None
    assert list(make_room(file).messages) == [0]


def test_a_file_that_somebody_has_removed_comes_back_whole(file):
    room = make_room(file)
    room.accept_message(make_message(0), 0)
    file.unlink()
    room.accept_message(make_message(1), 1)
    assert list(make_room(file).messages) == [0, 1]


@pytest.mark.parametrize(
    "text",
    ["", "x", "[]", "{}", '{"alpha": 1}', "{}\n{}", "\n\n", "1\n2", "null"],
)
def test_a_file_of_something_else_is_left_as_it_is(text, file):
    file.write_text(text)
    with pytest.raises(UsageError, match="no file of a class"):
        make_room(file)
    assert file.read_text() == text


def test_a_broken_line_in_the_middle_is_refused(file):
    room = make_room(file)
    room.accept_message(make_message(0), 0)
    head, message = read_lines(file)
    content = "\n".join([head, message[:50], message]) + "\n"
    file.write_text(content)
    with pytest.raises(UsageError, match="no file of a class"):
        make_room(file)
    assert file.read_text() == content


def test_a_file_of_an_earlier_version_goes_on(file):
    """In such a file the progress stands in the first line, and the last line has no line end."""
    room = make_room(file)
    room.accept_message(make_message(0), 0)
    room.conductor.begin_step("reveal", 0.0)
    room.conductor.show_result()
    head = room.about | {"progress": room._describe_progress()}
    lines = [json.dumps(head), room.messages[0].text]
    file.write_text("\n".join(lines))
    again = make_room(file)
    assert list(again.messages) == [0] and again.conductor.is_result_shown("reveal")
