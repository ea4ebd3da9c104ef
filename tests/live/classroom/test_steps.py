"""The steps of a class: the clock, the guesses before a result, what is covered, and what the results say."""

import dataclasses
import itertools
import re
from pathlib import Path

import pytest
import torch
from class_fixtures import make_joker, make_message, make_room

from fedlab_nb.data import load
from fedlab_nb.errors import UsageError
from fedlab_nb.live.classroom.conductor import STEPS, Conductor, find_right_option_index
from fedlab_nb.live.classroom.messages import CLASSES, build_untrained_class_network
from fedlab_nb.live.classroom.rehearse import make_simulated_students
from fedlab_nb.live.classroom.results import ClassResults
from fedlab_nb.live.classroom.room import Room
from fedlab_nb.live.classroom.rounds import (
    describe_phones_needed_for_rounds,
    list_trained_classes_nobody_staying_drew,
)
from fedlab_nb.live.classroom.worth import (
    MAX_SHOWN_IMAGES,
    WAYS,
    count_right_answers_with_and_without_message,
    measure_relative_logit_sizes,
    predict_classes_by_afl,
)


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture(scope="module")
def rehearsal():
    """A class of twelve simulated students."""
    clock = Clock()
    room = Room(0.1, 8, 0, clock=clock)
    people = list(make_simulated_students(room, 12))
    for student in people:
        room.accept_message(student.text, student.seat)
    return room, people, clock


def test_the_clock_counts_the_class_and_the_step():
    conductor = Conductor(begun=100.0)
    conductor.begin_step("send", 160.0)
    conductor.begin_step("send", 170.0)  # pressed twice
    step = conductor.describe_present_step(175.0)
    assert (step["step"], step["seconds"], step["total"]) == ("send", 15, 75)
    with pytest.raises(UsageError, match="dance"):
        conductor.begin_step("dance", 180.0)


def test_the_last_guess_counts_and_none_after_the_result():
    conductor = Conductor(0.0)
    conductor.begin_step("reveal", 1.0)
    conductor.store_guess(3, "reveal", 0)
    conductor.store_guess(3, "reveal", 2)
    conductor.store_guess(4, "reveal", 2)
    question = conductor.describe_present_step(2.0, seat_of_own_guess=3)["question"]
    assert question["counts"] == [0, 0, 2, 0]
    assert question["own"] == 2
    for wrong in (4, -1, "0", None):
        with pytest.raises(UsageError):
            conductor.store_guess(5, "reveal", wrong)
    with pytest.raises(UsageError):
        conductor.store_guess(5, "joker", 0)  # another step's question
    conductor.show_result()
    with pytest.raises(UsageError, match="too late"):
        conductor.store_guess(5, "reveal", 1)
    conductor.hide_result_and_discard_guesses()
    assert conductor.describe_present_step(3.0)["question"]["counts"] == [0, 0, 0, 0]


def test_the_guess_of_who_is_forgotten_is_no_longer_counted():
    room = make_room()
    room.accept_message(make_message(0))
    room.conductor.begin_step("reveal", 0.0)
    room.conductor.store_guess(0, "reveal", 1)
    room.forget_message(0)
    assert room.conductor.describe_present_step(1.0)["question"]["counts"] == [0, 0, 0, 0]


@pytest.mark.slow
def test_no_phone_is_told_what_is_covered(rehearsal):
    room, people, _ = rehearsal
    seat = people[0].seat
    results = room.results
    room.conductor.begin_step("reveal", 0.0)
    results.measure_contribution(seat)
    description = room.describe_for_phone(seat, results)
    assert "share" not in description
    assert "answer" not in description["question"]
    room.conductor.show_result()
    description = room.describe_for_phone(seat, results)
    assert description["question"]["answer"] is not None
    share = description["share"]
    assert share["images"] == 360
    assert share["drawings"]["images"] == 2 * 11  # two of each of the other students
    room.conductor.begin_step("digit", 0.0)
    room.set_teacher_digit(load("digits").x_test[0].flatten().tolist(), 7)
    assert "digit" not in room.describe_for_phone(seat, results)  # nobody has voted yet
    results.collect_votes_on_image(tuple(room.drawing["image"]))
    assert room.describe_for_phone(seat, results)["digit"]["label"] is None
    room.conductor.show_result()
    assert room.describe_for_phone(seat, results)["digit"]["label"] == 7


@pytest.mark.parametrize(
    ("step", "facts", "right_option"),
    [
        ("reveal", {"rows": {"Local only": 0.2, "FedAvg": 0.1, "Ensemble": 0.6, "AFL": 0.9}}, 3),
        ("reveal", {"rows": {"Local only": 0.2, "FedAvg": 0.1, "Ensemble": 0.6}}, 2),
        ("reveal", {"rows": {}}, None),
        ("joker", {"rows": {"Mean of logits": 0.1}, "before": {"Mean of logits": 0.4}}, 0),
        ("joker", {"rows": {"Mean of logits": 0.39}, "before": {"Mean of logits": 0.4}}, 4),
        ("joker", {"rows": {"FedAvg": 0.1}, "before": {"Mean of logits": 0.4, "FedAvg": 0.6}}, 1),
        ("forget", {"effect": {"with_it": 320, "without_it": 321}}, 0),
        ("forget", {"effect": {"with_it": 320, "without_it": 315}}, 1),
        ("forget", {"effect": {"with_it": 320, "without_it": 314}}, 2),
        ("forget", {"effect": {"with_it": 320, "without_it": 299}}, 3),
        ("forget", {}, None),
        ("rounds", {"rows": {"FENS": 0.5, "Ensemble": 0.54}}, 0),
        ("rounds", {"rows": {"FENS": 0.56, "Ensemble": 0.54}}, 1),
        ("rounds", {"rows": {"FENS": 0.8, "Ensemble": 0.54}}, 2),
    ],
)
def test_which_guess_was_right(step, facts, right_option):
    facts = {"rows": {}, "before": {}, "effect": None} | facts
    index = find_right_option_index(step, facts["rows"], facts["before"], facts["effect"])
    assert index == right_option


@pytest.mark.slow
def test_what_the_joker_did_stays_the_answer_after_a_removal():
    """A phone whose guess was right must not hear the opposite when the joker is taken out."""
    room = Room(0.1, 8, 0, clock=Clock())
    students = list(make_simulated_students(room, 12))
    for student in students:
        room.accept_message(student.text, student.seat)
    phone = students[0].seat
    room.conductor.begin_step("joker", 0.0)
    room.conductor.show_result()

    def find_answer_on_phone():
        return room.describe_for_phone(phone, room.results)["question"]["answer"]

    assert find_answer_on_phone() is None  # the joker has not come
    room.forget_message(students.pop().seat)
    assert find_answer_on_phone() is None  # who left before is not the joker's doing
    options = ["Mean of logits", "FedAvg", "Ensemble", "AFL"]
    for _ in range(2):
        seat, text = make_joker(room)
        room.add_malicious_message(text, seat)
        accuracies = room.results.get_test_accuracies()
        falls = [room.before[title] - accuracies[title] for title in options]
        largest_fall = falls.index(max(falls))
        assert find_answer_on_phone() == largest_fall
        room.forget_message(students.pop().seat)
        assert find_answer_on_phone() == largest_fall
        room.remove_malicious_message()
        assert find_answer_on_phone() == largest_fall


def test_four_steps_ask_a_question_and_no_two_steps_share_a_name():
    assert [step.name for step in STEPS if step.options] == ["reveal", "joker", "forget", "rounds"]
    assert len({step.name for step in STEPS}) == len(STEPS)


def test_a_way_has_one_name_on_every_screen(rehearsal):
    """The options that the class chooses from have the names of the bars."""
    room, _, _ = rehearsal
    rows = room.results.measure_combination_accuracies()
    names = {"FENS", "Nothing"} | {row["name"] for row in rows}
    for step in STEPS:
        if step.name in ("reveal", "joker"):
            assert {option.partition(":")[0] for option in step.options} <= names
    names_of_ways = {way["name"] for way in WAYS.values()}
    assert len(names_of_ways) == len(WAYS)
    assert max(map(len, names_of_ways)) <= 13  # beside a bar there is no more room


def test_the_run_sheet_and_the_wall_s_clock_have_the_same_minutes():
    """A row of the guide's table has the minute when the teacher presses a key; the lesson ends after 45."""
    guide = (Path(__file__).parents[3] / "notebooks/guide/class.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ([A-Z]) \|", guide, re.MULTILINE)
    minutes = [int(minute) for minute, _ in rows]
    lengths = [later - earlier for earlier, later in itertools.pairwise([*minutes, 45])]
    assert [key for _, key in rows] == list("DSRJFTM")
    assert lengths == [step.minutes for step in STEPS]


def test_every_option_that_is_a_way_is_explained_on_the_phone():
    explained = ""
    for step in STEPS:
        assert bool(step.explanation) == bool(step.options), step.name
        explained += step.explanation
        for option in step.options:
            name, colon, _ = option.partition(":")
            if colon:  # the option is a way, with its description
                assert f"{name}:" in explained, option


def test_a_share_is_the_class_with_and_without_its_message(rehearsal):
    """Against AFL's normal equations of all rows, with the seat's rows and without them."""
    room, people, _ = rehearsal
    student = people[3]
    digits = load("digits")
    x = digits.x_test.flatten(1)
    y = digits.y_test
    share = count_right_answers_with_and_without_message(
        [*room.messages.values()], student.seat, x, y
    )

    def append_ones(images):
        return torch.cat([images.double(), torch.ones(len(images), 1, dtype=torch.float64)], 1)

    def find_correct(students):
        """Which test images are classified correctly by the sums of these students."""
        rows = append_ones(torch.cat([each.x for each in students]))
        labels = torch.cat([each.y for each in students])
        targets = torch.eye(CLASSES, dtype=torch.float64)[labels]
        weights = torch.linalg.solve(rows.T @ rows + torch.eye(65), rows.T @ targets)
        return (append_ones(x) @ weights).argmax(1) == y

    with_it = find_correct(people)
    without_it = find_correct(people[:3] + people[4:])
    assert share["with_it"] == int(with_it.sum())
    assert share["without_it"] == int(without_it.sum())
    assert share["helped"] == (with_it & ~without_it).nonzero()[:, 0].tolist()
    assert share["harmed"] == int((without_it & ~with_it).sum())
    images_of_its_classes = sum(int((y == c).sum()) for c in set(student.y.tolist()))
    assert sum(n for n, _, _ in share["classes"].values()) == images_of_its_classes


def test_a_phone_counts_what_the_wall_counts(rehearsal):
    """The 360 test digits, as in the bars and in the headline after somebody is forgotten; the
    drawings of the class are counted apart."""
    room, people, _ = rehearsal
    seat = people[3].seat
    share = room.results.measure_contribution(seat)
    loss = room.results.measure_loss_without_message(seat)
    assert {name: share[name] for name in loss} == loss
    assert share["with_it"] == round(360 * room.results.get_test_accuracies()["AFL"])
    drawings = share["drawings"]
    gained = share["with_it"] - share["without_it"]
    gained += drawings["with_it"] - drawings["without_it"]
    assert share["helped"] - share["harmed"] == gained
    assert len(share["shown"]) == min(share["helped"], MAX_SHOWN_IMAGES)


def test_a_share_is_computed_without_any_drawing_of_the_class():
    room = make_room()
    for seat in range(2):
        room.accept_message(make_message(seat, given=0, model=build_untrained_class_network(seat)))
    network_alone = dataclasses.replace(room.messages[0], sums=None)
    results = ClassResults([network_alone, room.messages[1]])
    assert results.measure_contribution(0)["drawings"]["images"] == 0
    assert results.measure_contribution(0)["way"] == "Ensemble"


def test_without_the_only_message_nothing_is_classified_correctly():
    room = make_room()
    room.accept_message(make_message(0, model=build_untrained_class_network(1)))
    digits = load("digits")
    x = digits.x_test.flatten(1)
    y = digits.y_test
    share = count_right_answers_with_and_without_message([*room.messages.values()], 0, x, y)
    alone = predict_classes_by_afl(room.messages[0].sums, 1, x)
    assert (share["with_it"], share["without_it"]) == (int((alone == y).sum()), 0)


def test_who_has_to_stay_is_said_by_name(rehearsal):
    room, people, clock = rehearsal
    loudness = room.results.measure_relative_logit_sizes()
    room.staying.clear()
    need = room.describe_phones_needed_for_rounds(loudness)
    assert need["phones"] == 0
    assert not need["is_enough"]
    room.handle_round_request(people[0].seat, "{}", 0.0)
    need = room.describe_phones_needed_for_rounds(loudness)
    drawn_classes = set(people[0].y.tolist())
    assert need["phones"] == 1
    assert need["missing"] == sorted(set(range(CLASSES)) - drawn_classes)
    assert not need["is_enough"]
    assert need["ask"]
    assert need["ask"][0] in need["sentence"]
    for student in people:
        room.handle_round_request(student.seat, "{}", 0.0)
    assert room.describe_phones_needed_for_rounds(loudness)["is_enough"]
    clock.now += 10.0  # nobody has been heard of since
    assert room.describe_phones_needed_for_rounds(loudness)["phones"] == 0


def test_missing_classes_are_those_that_networks_know_and_nobody_staying_drew():
    assert list_trained_classes_nobody_staying_drew([(1, 0, 2), (0, 0, 1)], [(1, 0, 0)]) == [2]
    assert list_trained_classes_nobody_staying_drew([(1, 0, 2)], []) == [0, 2]
    assert list_trained_classes_nobody_staying_drew([(1, 0, 0)], [(3, 0, 0)]) == []


@pytest.mark.slow
def test_the_result_of_the_rounds_is_explained_after_a_good_one_without_a_digit_and_with_a_joker(
    rehearsal,
):
    room, people, _ = rehearsal

    def explain_rounds_with(students):
        room.staying.clear()
        for student in students:
            room.handle_round_request(student.seat, "{}", 0.0)
        room.start_fens_rounds()
        for now in range(53):
            for student in students:
                student.answer_new_round(room, 4.0 * now)
        assert room.rounds.is_over
        return room.results.explain_result_of_fens_rounds()

    explanation = explain_rounds_with(people)
    assert "only who is believed" in explanation or "too few" in explanation
    assert "No phone that stayed has drawn" in explain_rounds_with(people[:2])
    seat, text = make_joker(room)
    room.add_malicious_message(text, seat)
    loudness = room.results.measure_relative_logit_sizes()
    need = describe_phones_needed_for_rounds(room.messages, [s.seat for s in people], loudness)
    assert not need["is_enough"]
    assert "M" in need["loud"]
    assert "shouts" in explain_rounds_with(people)
    room.forget_message(seat)
    assert room.joker is None
    assert room.rounds is None
    assert "shouts" not in room.results.explain_result_of_fens_rounds()


def test_loudness_is_relative_to_the_median_network():
    room = make_room()
    for seat, factor in enumerate((1.0, 1.0, 1000.0)):
        model = build_untrained_class_network(seat)
        last_layer = [*model.parameters()][-2:]
        for part in last_layer:
            part.data *= factor
        room.accept_message(make_message(seat, model=model))
    messages = [*room.messages.values()]
    loudness = measure_relative_logit_sizes(messages, load("digits").x_test.flatten(1))
    assert loudness[2] > 500
    assert max(loudness[0], loudness[1]) < 3


def test_the_teacher_s_digit_is_64_numbers_and_one_of_ten():
    room = make_room()
    wrong = [([0.0] * 63, None), ([2.0] * 64, None), (["a"] * 64, 1), ([0.0] * 64, 10)]
    for image, label in wrong:
        with pytest.raises(UsageError):
            room.set_teacher_digit(image, label)
    assert room.collect_votes_on_teacher_digit(room.results) is None
    room.accept_message(make_message(0, model=build_untrained_class_network(0)))
    room.set_teacher_digit([0.5] * 64, None)
    assert room.collect_votes_on_teacher_digit(room.results) is None  # they have not been computed
    room.results.collect_votes_on_image((0.5,) * 64)
    votes = room.collect_votes_on_teacher_digit(room.results)
    assert set(votes["seats"]) == {0}
    assert "AFL" in votes["ways"]
    assert votes["label"] is None


def test_a_phone_that_sleeps_keeps_its_desk_for_a_while_and_with_a_message_for_good():
    clock = Clock()
    room = Room(0.1, 8, 0, clock=clock)
    for seat in (0, 1):
        room.note_phone_presence(seat, 3)
    room.accept_message(make_message(1))
    assert [seat["office"] for seat in room.describe_seats_for_projector()] == ["A", "B"]
    assert [seat["sleeps"] for seat in room.describe_seats_for_projector()] == [False, False]
    clock.now = 20.0
    assert [seat["sleeps"] for seat in room.describe_seats_for_projector()] == [True, True]
    clock.now = 200.0
    assert [seat["office"] for seat in room.describe_seats_for_projector()] == ["B"]
    room.note_phone_presence(0, 4)  # it wakes up
    assert [seat["office"] for seat in room.describe_seats_for_projector()] == ["A", "B"]
    assert [seat["drawn"] for seat in room.describe_seats_for_projector()] == [4, 3]


def test_desks_are_bounded():
    clock = Clock()
    room = Room(0.1, 8, 0, clock=clock)
    for seat in range(500):
        room.note_phone_presence(seat)
    assert len(room.present) == 300
    assert 299 in room.present
    clock.now = 200.0
    room.note_phone_presence(777)
    assert len(room.present) == 300
    assert 777 in room.present
