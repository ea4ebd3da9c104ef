"""A rehearsal goes as a lesson goes: who is there draws, then sends one after another, guesses and stays."""

import asyncio

import pytest
from class_fixtures import a_message, make_joker

from fedlab_nb.live.classroom.rehearse import (
    SENDING,
    TICK,
    make_simulated_students,
    simulate_students_until_cancelled,
)
from fedlab_nb.live.classroom.room import Room

COUNT = 20


class Clock:
    """Time that goes on only where the rehearsal waits."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        self.plans = []  # (second, work)
        monkeypatch.setattr(asyncio, "sleep", self.sleep)

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds
        while self.plans and self.plans[0][0] <= self.now:
            self.plans.pop(0)[1]()

    def run(self, room, count, plans):
        """Rehearse with `count` students; plans: {second: work}, the last of which ends it."""

        def end():
            raise asyncio.CancelledError

        self.plans = [*sorted(plans.items())]
        last, work = self.plans.pop()
        self.plans.append((last, lambda: (work(), end())))
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(simulate_students_until_cancelled(room, count))


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_they_come_and_draw_and_send_one_after_another_when_the_teacher_says_so(clock):
    room = Room(0.1, 8, 0, clock=clock)
    seen = {}
    arrivals = []
    accept = room.accept_message

    def take(text, seat=None):
        arrivals.append(clock.now)
        return accept(text, seat)

    def look(name):
        seen[name] = (
            len(room.describe_seats()),
            len(room.messages),
            max(s["drawn"] for s in room.describe_seats()),
        )

    room.accept_message = take
    plans = {
        1.0: lambda: look("first"),
        12.0: lambda: (look("drawn"), room.conductor.begin_step("send", clock.now)),
        30.0: lambda: look("sent"),
    }
    clock.run(room, COUNT, plans)
    assert 1 <= seen["first"][0] < COUNT and seen["first"][1] == 0 and seen["first"][2] < 8
    assert seen["drawn"] == (COUNT, 0, 8)  # nobody sends while the class draws
    assert seen["sent"][:2] == (COUNT, COUNT)
    gaps = [later - earlier for earlier, later in zip(arrivals, arrivals[1:], strict=False)]
    assert min(gaps) >= SENDING / COUNT - 1e-9  # one after another, so that each is seen flying
    assert arrivals[-1] - arrivals[0] <= SENDING + COUNT * TICK


@pytest.mark.parametrize(("guest", "is_forgotten"), [(False, True), (True, False)])
def test_one_wants_to_be_forgotten_where_nobody_else_is_there_to_want_it(
    clock, guest, is_forgotten
):
    room = Room(0.1, 8, 0, clock=clock)
    if guest:
        room.accept_message(a_message(50))
    plans = {
        5.0: lambda: room.conductor.begin_step("send", clock.now),
        20.0: lambda: room.conductor.begin_step("forget", clock.now),
        50.0: lambda: None,
    }
    clock.run(room, 3, plans)
    assert (room.effect is not None) is is_forgotten
    assert len(room.messages) == 3 - is_forgotten + guest  # and it does not send again


def test_a_restarted_class_has_the_same_simulated_students(tmp_path, clock):
    """They do not come a second time, they stay and guess as before; the joker is still known."""
    file = tmp_path / "class.jsonl"
    room = Room(0.1, 8, 0, file, clock=clock)
    plans = {5.0: lambda: room.conductor.begin_step("send", clock.now), 20.0: lambda: None}
    clock.run(room, 4, plans)
    seat, text = make_joker(room)
    room.add_malicious_message(text, seat)
    room.conductor.begin_step("joker", clock.now)
    room.conductor.show_result()
    room.rewrite_class_file()

    again = Room(0.1, 8, 0, file, clock=clock)
    assert again.messages.keys() == room.messages.keys() and len(again.messages) == 5
    assert again.joker == seat and again.simulated == room.simulated and not again.has_real_messages
    assert again.before == room.before and again.conductor.is_result_shown("joker")
    assert again.conductor.step.name == "joker"
    assert (
        again.make_arrays_of_class_dataset()["messages"].tolist()
        == room.make_arrays_of_class_dataset()["messages"].tolist()
    )  # without it
    twice = [student.text for student in make_simulated_students(again, 4)]
    assert twice == [room.messages[k].text for k in range(4)]
    clock.run(again, 4, {clock.now + 20.0: lambda: None})
    assert again.messages.keys() == room.messages.keys()
    assert again.list_seats_of_staying_phones() == [0, 1, 2, 3]
