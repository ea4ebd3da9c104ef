"""A rehearsal goes as a lesson does: simulated students draw, send one after another, guess and stay."""

import asyncio
import itertools

import pytest
from class_fixtures import make_joker, make_message

from fedlab_nb.live.classroom.rehearse import (
    SENDING,
    TICK,
    make_simulated_students,
    simulate_students_until_cancelled,
)
from fedlab_nb.live.classroom.room import Room

COUNT = 20


class Clock:
    """Time that passes only while the rehearsal sleeps."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        self.plans = []  # (second, action), in order
        monkeypatch.setattr(asyncio, "sleep", self.sleep)

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds
        while self.plans and self.plans[0][0] <= self.now:
            _, act = self.plans.pop(0)
            act()

    def rehearse(self, room, count, plans):
        """Rehearse with `count` students until the last plan has been carried out.

        plans: {second: action}
        """

        def end():
            raise asyncio.CancelledError

        self.plans = sorted(plans.items())
        self.plans.append((max(plans), end))
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(simulate_students_until_cancelled(room, count))


def do_nothing():
    """The last plan of a rehearsal that only has to end."""


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@pytest.mark.slow
def test_they_come_and_draw_and_send_one_after_another_when_the_teacher_says_so(clock):
    room = Room(0.1, 8, 0, clock=clock)
    looks = {}  # {moment: (seats, messages, most drawings of a seat)}
    arrivals = []
    accept_message = room.accept_message

    def note_arrival(text, seat=None):
        arrivals.append(clock.now)
        return accept_message(text, seat)

    def look(moment):
        seats = room.describe_seats_for_projector()
        looks[moment] = (len(seats), len(room.messages), max(seat["drawn"] for seat in seats))

    def look_and_begin_sending():
        look("drawn")
        room.conductor.begin_step("send", clock.now)

    room.accept_message = note_arrival
    plans = {
        1.0: lambda: look("first"),
        12.0: look_and_begin_sending,
        30.0: lambda: look("sent"),
    }
    clock.rehearse(room, COUNT, plans)
    seats, messages, drawings = looks["first"]
    assert 1 <= seats < COUNT
    assert messages == 0
    assert drawings < 8
    assert looks["drawn"] == (COUNT, 0, 8)  # nobody sends while the class draws
    assert looks["sent"][:2] == (COUNT, COUNT)
    gaps = [later - earlier for earlier, later in itertools.pairwise(arrivals)]
    assert min(gaps) >= SENDING / COUNT - 1e-9  # one after another, so that each is seen flying
    assert arrivals[-1] - arrivals[0] <= SENDING + COUNT * TICK


@pytest.mark.parametrize("has_guest", [False, True])
def test_a_simulated_student_is_forgotten_only_where_no_real_one_is_there(clock, has_guest):
    room = Room(0.1, 8, 0, clock=clock)
    if has_guest:
        room.accept_message(make_message(50))
    plans = {
        5.0: lambda: room.conductor.begin_step("send", clock.now),
        20.0: lambda: room.conductor.begin_step("forget", clock.now),
        50.0: do_nothing,
    }
    clock.rehearse(room, 3, plans)
    if has_guest:
        assert room.effect is None
        assert len(room.messages) == 4
    else:
        assert room.effect is not None
        assert len(room.messages) == 2  # who was forgotten does not send again


def test_a_restarted_class_has_the_same_simulated_students(tmp_path, clock):
    """They do not come a second time, they stay and guess as before; the joker is still known."""
    file = tmp_path / "class.jsonl"
    room = Room(0.1, 8, 0, file, clock=clock)
    plans = {5.0: lambda: room.conductor.begin_step("send", clock.now), 20.0: do_nothing}
    clock.rehearse(room, 4, plans)
    seat, text = make_joker(room)
    room.add_malicious_message(text, seat)
    room.conductor.begin_step("joker", clock.now)
    room.conductor.show_result()
    room.rewrite_class_file()

    again = Room(0.1, 8, 0, file, clock=clock)
    assert again.messages.keys() == room.messages.keys()
    assert len(again.messages) == 5
    assert again.joker == seat
    assert again.simulated == room.simulated
    assert not again.has_real_messages
    assert again.before == room.before
    assert again.conductor.is_result_shown("joker")
    assert again.conductor.step.name == "joker"
    saved = again.make_arrays_of_class_dataset()["messages"]  # without the joker's
    assert saved.tolist() == room.make_arrays_of_class_dataset()["messages"].tolist()
    texts = [student.text for student in make_simulated_students(again, 4)]
    assert texts == [room.messages[k].text for k in range(4)]
    clock.rehearse(again, 4, {clock.now + 20.0: do_nothing})
    assert again.messages.keys() == room.messages.keys()
    assert again.list_seats_of_staying_phones() == [0, 1, 2, 3]
