"""The class: what a message may be, what a room makes of it, and that its sums are those of one place."""

import base64
import json
import sys
from collections import Counter

import numpy as np
import pytest
import torch
from class_fixtures import make_joker, make_message, make_room
from hypothesis import given, settings
from hypothesis import strategies as st
from javascript import run_javascript
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from fedlab_nb.data import federate, load
from fedlab_nb.errors import UsageError
from fedlab_nb.live.classroom.messages import (
    CLASSES,
    FULL,
    LIMIT,
    PARAMETERS,
    PIXELS,
    build_untrained_class_network,
    convert_class_sums_to_ridge_sums,
    encode_message,
    encode_tensor_in_base64,
    parse_message,
)
from fedlab_nb.live.classroom.rehearse import Student, make_simulated_students
from fedlab_nb.live.classroom.room import Room
from fedlab_nb.live.classroom.worth import (
    collect_test_drawings,
    generate_samples_with_same_sums,
    predict_classes_by_all_combinations,
    project_class_means_into_plane,
)
from fedlab_nb.methods import METHODS, afl, gauss
from fedlab_nb.methods.fens.aggregators import make_per_class_aggregator
from fedlab_nb.methods.fens.training import ProxySamples
from fedlab_nb.rng import make_torch_generator


@pytest.fixture(scope="module")
def rehearsed():
    """A room after eleven simulated students and the teacher's joker."""
    room = make_room()
    for student in make_simulated_students(room, 11):
        room.accept_message(student.text, student.seat)
    seat, text = make_joker(room)
    room.add_malicious_message(text, seat)
    return room


# ------------------------------------------------------------------------------------------------------------- messages
def test_afl_and_gaussian_heads_from_messages_are_those_of_one_place():
    room = make_room()
    digits = load("digits")
    for seat in range(40):
        room.accept_message(make_message(seat, given=0))
    messages = list(room.messages.values())
    sums = [message.sums for message in messages]
    total = sum(sums[1:], sums[0])
    x = digits.x_train[:240].flatten(1)
    y = digits.y_train[:240]
    test = digits.x_test.flatten(1)

    rows = append_ones(x)
    weights = np.linalg.solve(rows.T @ rows + np.eye(PIXELS + 1), rows.T @ np.eye(CLASSES)[y])
    solved = afl.solve_classifier_weights(convert_class_sums_to_ridge_sums(total), 40, 0.0, 1.0)
    np.testing.assert_allclose(solved.numpy(), weights, atol=1e-6)
    predictions = predict_classes_by_all_combinations(messages, test)
    scores = append_ones(test) @ weights
    assert (predictions["AFL"][1].numpy() == scores.argmax(1)).all()

    sums_of_one_place = gauss.measure_class_sums(x, y, CLASSES, "full")
    assert torch.equal(total.counts, sums_of_one_place.counts)
    assert torch.equal(total.second, sums_of_one_place.second)


def append_ones(x):
    """`x [n, 64]` with a column of ones, as float64."""
    return np.column_stack([x.double().numpy(), np.ones(len(x))])


def test_to_be_forgotten_is_never_to_have_sent(tmp_path):
    forgetful = make_room(tmp_path / "a.jsonl")
    never_sent = make_room()
    for seat in range(8):
        forgetful.accept_message(make_message(seat, model=build_untrained_class_network(seat)))
        if seat != 3:
            never_sent.accept_message(make_message(seat, model=build_untrained_class_network(seat)))
    secret = forgetful.messages[3].text
    forgetful.forget_message(3)
    accuracies = forgetful.results.measure_combination_accuracies()
    assert accuracies == never_sent.results.measure_combination_accuracies()
    assert (
        forgetful.describe_messages_for_projector() == never_sent.describe_messages_for_projector()
    )
    assert secret not in (tmp_path / "a.jsonl").read_text()


NAN_NETWORK = base64.b64encode(np.full(PARAMETERS, np.nan, "<f4").tobytes()).decode()
# Whole texts, or parts that replace those of a right message.
BAD = {
    "no JSON": "{", "deep": "[" * 100_000, "a list": "[]", "lacking": '{"seat": 1}', "long": " " * (LIMIT + 1),
    "number": {"seat": 1.0}, "negative": {"seat": -1}, "truth": {"seat": True}, "nan": {"seat": float("nan")},
    "name": {"name": 7}, "name list": {"name": ["a"]}, "keep": {"keep": 1},
    "counts": {"counts": [1] * 9}, "fractions": {"counts": [0.5] * 10}, "nothing": {"counts": [0] * 10},
    "below": {"counts": [-1, 8] + [0] * 8}, "too many": {"counts": [7] * 10}, "NaN": {"network": NAN_NETWORK},
    "huge": {"network": base64.b64encode(np.full(PARAMETERS, 1e9, "<f4").tobytes()).decode()},
    "short": {"network": NAN_NETWORK[:400]}, "code": {"sums": "<script>"}, "object": {"sums": {"a": 1}},
    "empty": {"sums": "", "network": ""}, "label": {"test": base64.b64encode(bytes([0] * 64 + [10])).decode()},
    "bright": {"test": base64.b64encode(bytes([17] * 64 + [1])).decode()}, "cut": {"test": "AAAA"},
    "more": {"extra": 1}, "pickle": {"test": base64.b64encode(b"\x80\x04K\x01.").decode()},
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_message_is_one_sentence_and_changes_nothing(name):
    room = make_room()
    text = BAD[name]
    if isinstance(text, dict):
        text = json.dumps(json.loads(make_message(0)) | text)
    with pytest.raises(UsageError, match=r"^Message rejected: .*\.$"):
        room.accept_message(text)
    assert not room.messages
    assert room.version == 1


def test_sums_above_their_counts_are_refused():
    """A sum of squares that is larger than the count of its class, since a pixel is at most 1."""
    message = json.loads(make_message(0, n=9, given=0))
    numbers = np.frombuffer(base64.b64decode(message["sums"]), "<f4").copy()
    rows = numbers.reshape(-1, PIXELS + PIXELS * (PIXELS + 1) // 2)  # one for each class
    counts = [n for n in message["counts"] if n]
    assert min(counts) < max(counts)
    rows[counts.index(min(counts)), 70] = max(counts)
    message["sums"] = base64.b64encode(rows.tobytes()).decode()
    with pytest.raises(UsageError):
        parse_message(json.dumps(message))


def test_a_seat_sends_once_and_the_same_message_again_is_no_other():
    room = make_room()
    text = make_message(2)
    room.accept_message(text, 2)
    version = room.version
    room.accept_message(text, 2)
    assert room.version == version
    assert len(room.messages) == 1
    for other, seat in [(make_message(2, given=2), 2), (make_message(4), 5)]:
        with pytest.raises(UsageError):
            room.accept_message(other, seat)


def test_a_message_comes_back_as_it_was_written():
    model = build_untrained_class_network(7)
    digits = load("digits")
    message = parse_message(make_message(1, n=20, given=5, model=model))
    assert torch.equal(message.x, digits.x_train[20:25].flatten(1))
    assert torch.equal(message.y, digits.y_train[20:25])
    assert all(map(torch.equal, message.network.parameters(), model.parameters()))
    assert message.sums.counts.tolist() == list(message.counts)
    assert sum(message.counts) == 15


def test_a_phone_s_sums_are_those_that_python_writes():
    """Their bytes, their counts, and the size that the phone says beforehand."""
    digits = load("digits")
    x = digits.x_train[:9].flatten(1)
    y = digits.y_train[:9]
    message = json.loads(encode_message(0, "", x, y))
    code = "const sums = sumDrawings(Float32Array.from(x), y);"
    code += "return [encodeArray(packSums(sums)), [...sums.counts], measureAsText(4 * SUM_SIZE)];"
    sums, counts, size = run_javascript("sums message", code, x=x.flatten().tolist(), y=y.tolist())
    assert sums == message["sums"]
    assert counts == message["counts"]
    class_count = len(set(y.tolist()))
    assert len(sums) == pytest.approx(size * class_count, abs=4 * class_count)


# ---------------------------------------------------------------------------------------------------------------- seats
@given(st.floats(0.001, 1000), st.integers(5, 60), st.integers(0, 5), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_a_seat_draws_the_same_number_of_digits_each_time_it_is_asked(alpha, drawings, seed, seat):
    room = Room(alpha, drawings, seed)
    labels = room.choose_labels_to_draw(seat)
    assert len(labels) == drawings
    assert set(labels) <= set(range(CLASSES))
    assert labels == room.choose_labels_to_draw(seat)


@given(st.floats(0.02, 0.99), st.integers(5, 30), st.integers(0, 5), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_a_seat_draws_two_or_three_classes_and_keeps_some_of_each(alpha, drawings, seed, seat):
    labels = Room(alpha, drawings, seed).choose_labels_to_draw(seat)
    kept = [label for i, label in enumerate(labels) if i % 4 != 3]  # every fourth is given away
    counts = Counter(labels)
    assert 2 <= len(counts) <= 3
    assert set(kept) == set(labels)
    assert min(counts.values()) >= 2
    assert counts[seat % CLASSES] == max(counts.values())


def test_alpha_says_how_many_classes_and_ten_seats_have_them_all():
    def count_classes(alpha):
        room = make_room(alpha=alpha)
        return np.mean([len(set(room.choose_labels_to_draw(seat))) for seat in range(30)])

    assert count_classes(alpha=0.05) < 3
    assert count_classes(alpha=100) > 7
    room = make_room(alpha=0.05)
    classes = set()
    for seat in range(20, 30):
        classes.update(room.choose_labels_to_draw(seat))
    assert classes == set(range(CLASSES))


# ----------------------------------------------------------------------------------------------------------- the result
def test_rows_made_from_sums_have_these_sums():
    sums = parse_message(make_message(0, n=40, given=0)).sums
    for c in np.flatnonzero(sums.counts.numpy()).tolist():
        rows = generate_samples_with_same_sums(sums, c, np.random.default_rng(c))
        assert len(rows) == sums.counts[c]
        np.testing.assert_allclose(rows.sum(0), sums.sums[c].numpy(), atol=1e-9)
        np.testing.assert_allclose(rows.T @ rows, sums.second[c].numpy(), atol=1e-9)


@pytest.mark.parametrize(
    ("n", "are_all_found"), [(1, True), (2, True), (3, True), (8, True), (15, True), (30, False)]
)
def test_sums_give_the_drawings_back(n, are_all_found):
    """All of them, to the pixel. With 30 this search gets stuck; a better one may not."""
    drawings = load_threes(n)
    assert (recover_drawings(drawings) == sort_as_sixteenths(drawings)) is are_all_found


def test_two_drawings_that_are_alike_are_found_twice():
    drawings = load_threes(3)[[0, 0, 1, 2]]
    assert recover_drawings(drawings) == sort_as_sixteenths(drawings)


def load_threes(count):
    """The first images of a 3, `[count, 64]`."""
    digits = load("digits")
    rows = (digits.y_train == 3).nonzero()[:count, 0]
    return digits.x_train[rows].flatten(1)


def sort_as_sixteenths(drawings):
    """The pixels of each drawing as whole numbers 0–16; the drawings sorted, since their order is lost."""
    return sorted(tuple(row) for row in (FULL * drawings).round().long().tolist())


def recover_drawings(drawings):
    """What the phone's search finds in the sums of `drawings [n, 64]`, all of one class."""
    labels = torch.full([len(drawings)], 3)
    sums = parse_message(encode_message(0, "", drawings, labels)).sums
    given = {
        "count": len(drawings),
        "sums": sums.sums[3].tolist(),
        "second": sums.second[3].flatten().tolist(),
    }
    found = run_javascript("recover", "return recoverDrawings(count, sums, second);", **given)
    return sort_as_sixteenths(torch.tensor(found).view(-1, PIXELS))


def test_the_plane_is_that_of_all_drawings_in_one_place():
    """Against the principal components of the drawings themselves."""
    room = make_room()
    n = 6
    clients = 9
    for seat in range(clients):
        room.accept_message(make_message(seat, n, given=0))
    digits = load("digits")
    x = digits.x_train[: n * clients].flatten(1).double().numpy()
    y = digits.y_train[: n * clients].numpy()
    owner = np.arange(len(y)) // n
    shown = project_class_means_into_plane(room.messages.values())
    _, singular, axes = np.linalg.svd(x - x.mean(0), full_matrices=False)
    share = (singular[:2] ** 2).sum() / (singular**2).sum()
    np.testing.assert_allclose(shown["share"], share, atol=1e-9)

    pairs = []
    for k in range(clients):
        for c in sorted(set(y[owner == k])):
            pairs.append((k, c))
    means = np.array([x[(owner == k) & (y == c)].mean(0) for k, c in pairs])
    assert [tuple(point[:2]) for point in shown["points"]] == pairs
    coordinates = np.array(shown["points"])[:, 2:]
    for i in range(2):
        expected = means @ axes[i]
        expected = (expected - expected.min()) / np.ptp(expected)
        flipped = 1 - expected  # the sign of an axis is arbitrary
        if coordinates[:, i] @ flipped >= coordinates[:, i] @ expected:
            expected = flipped
        np.testing.assert_allclose(coordinates[:, i], expected, atol=1e-9)

    nearest_has_same_class = 0
    for (k, c), mean in zip(pairs, means, strict=True):
        others = []
        for (other_client, other_class), other_mean in zip(pairs, means, strict=True):
            if other_client != k:
                others.append((np.linalg.norm(mean - other_mean), other_class))
        _, nearest_class = min(others)
        nearest_has_same_class += nearest_class == c
    assert 0 < shown["alike"] == nearest_has_same_class < len(pairs)
    assert project_class_means_into_plane([]) == {"points": [], "share": 0, "alike": 0}


def test_the_result_is_a_federation_with_clients_of_its_own(rehearsed, tmp_path):
    hidden = make_room()
    hidden.accept_message(json.dumps(json.loads(make_message(0)) | {"keep": False}))
    with pytest.raises(UsageError):
        hidden.make_arrays_of_class_dataset()
    np.savez(tmp_path / "class.npz", **rehearsed.make_arrays_of_class_dataset())
    fed = federate(tmp_path / "class.npz")
    assert fed.partition == "natural"
    assert fed.clients == 11  # the joker is in no file
    assert fed.note.startswith("These are you: 11 offices of a class.")
    dataset = fed.dataset
    counts = {m.office_and_nickname: list(m.counts) for m in [*rehearsed.messages.values()][:11]}
    assert dict(zip(dataset.client_names, fed.label_counts.tolist(), strict=True)) == counts
    _, test_labels = collect_test_drawings(rehearsed.messages.values())
    assert len(dataset.y_test) == len(test_labels)


def test_a_joker_s_network_is_taken_out_again(rehearsed):
    everybody = list(rehearsed.messages.values())
    honest = everybody[:11]
    x = load("digits").x_test.flatten(1)
    predictions_of_all = predict_classes_by_all_combinations(everybody, x)
    predictions = predict_classes_by_all_combinations(honest, x)
    assert predictions_of_all["AFL"][0] == 12
    assert predictions["AFL"][0] == 11
    assert not torch.equal(predictions_of_all["FedAvg"][1], predictions["FedAvg"][1])

    networks = torch.stack([parameters_to_vector(m.network.parameters()) for m in honest])
    sizes = torch.tensor([sum(m.counts) for m in honest])[:, None]
    combined = {
        "FedAvg": (networks * sizes).sum(0) / sizes.sum(),
        "FedAvg, median": networks.median(0).values,
    }
    for title, parameters in combined.items():
        model = build_untrained_class_network()
        vector_to_parameters(parameters, model.parameters())
        assert torch.equal(model(x.view(-1, 1, 8, 8)).argmax(1), predictions[title][1])
    rows = {row["title"]: row for row in rehearsed.results.measure_combination_accuracies()}
    assert rows["Gaussian heads"]["digits"] > rows["Local only"]["digits"] + 0.2


def start_rounds(room, clients=4, n=9, factor=1.0):
    """Send networks to the room and start the tiny rounds; returns the phones that have sent them.

    factor: by which the parameters of the first network are multiplied, as a joker would do
    """
    digits = load("digits")
    phones = []
    for seat in range(clients):
        count = n + seat
        model = build_untrained_class_network(seat)
        if seat == 0:
            for part in model.parameters():
                part.data *= factor
        room.accept_message(make_message(seat, count, given=0, model=model))
        rows = slice(count * seat, count * (seat + 1))
        phones.append(Student(seat, digits.x_train[rows].flatten(1), digits.y_train[rows], ""))
    room.start_fens_rounds()
    return phones


def test_the_tiny_rounds_are_those_of_fens():
    room = make_room()
    phones = start_rounds(room)
    for now in range(room.rounds.describe_progress()["of"] + 4):  # the first round waits for others
        for phone in phones:
            phone.answer_new_round(room, float(now))
    assert room.rounds.round == room.rounds.describe_progress()["of"]

    rule = make_per_class_aggregator(4, CLASSES)
    proxies = {phone.seat: ProxySamples(phone.logits.transpose(0, 1), phone.y) for phone in phones}
    fens = METHODS["fens"]()
    for _ in fens.train_aggregator_in_place(
        rule, proxies, lambda k: make_torch_generator(0, "x", k)
    ):
        pass
    np.testing.assert_allclose(room.rounds.table, rule.get_client_weights(), atol=1e-5)
    assert float((room.rounds.table - 0.25).abs().max()) > 0.1

    digits = load("digits")
    predictions = rule(room.rounds.clients.logits(digits.x_test).transpose(0, 1)).argmax(1)
    accuracy = float((predictions == digits.y_test).double().mean())
    rows = {row["title"]: row for row in room.results.measure_combination_accuracies()}
    assert rows["FENS"]["of"] == 4
    assert rows["FENS"]["digits"] == pytest.approx(accuracy)


def test_who_leaves_is_left_out_and_who_is_forgotten_ends_the_rounds():
    room = make_room()
    phones = start_rounds(room, factor=-100.0)
    for now in range(6):
        for phone in phones:
            phone.answer_new_round(room, float(now))
    for now in (6, 7):
        for phone in phones[:3]:
            phone.answer_new_round(room, float(now))
    before = room.rounds.round
    assert before > 1
    assert room.rounds.describe_progress()["phones"] == 4
    for now in (10, 14, 18, 22):
        for phone in phones[:3]:
            phone.answer_new_round(room, float(now))
    assert room.rounds.describe_progress()["phones"] == 3
    assert room.rounds.round > before
    for wrong in ("[", "[]", json.dumps({"round": room.rounds.round, "weights": "AAAA"})):
        with pytest.raises(UsageError):
            room.handle_round_request(0, wrong, 30.0)
    with pytest.raises(UsageError):
        room.handle_round_request(9, "{}", 30.0)
    room.forget_message(3)
    assert room.rounds is None
    assert room.handle_round_request(0, "{}", 31.0) == {}


def test_a_phone_that_was_late_once_is_waited_for_again():
    """Else the others, who are quicker, would end each round before its answer."""
    room = make_room()
    phones = start_rounds(room)
    rounds = room.rounds
    late = phones[3]
    others = phones[:3]
    for phone in phones:
        phone.answer_new_round(room, 0.0)
    room.end_round_if_due(4.0)
    assert rounds.expected == {0, 1, 2, 3}
    for phone in others:
        phone.answer_new_round(room, 5.0)
    known = rounds.round
    room.end_round_if_due(5.1)
    assert rounds.round == known  # it waits
    room.end_round_if_due(9.0)
    assert rounds.round == known + 1
    assert rounds.expected == {0, 1, 2}
    answer_to_past_round = {"round": known, "weights": encode_tensor_in_base64(rounds.table)}
    room.handle_round_request(late.seat, json.dumps(answer_to_past_round), 9.1)
    assert rounds.round == known + 1
    assert rounds.expected == {0, 1, 2, 3}
    for phone in others:
        phone.answer_new_round(room, 9.2)
    assert rounds.round == known + 1  # the late one is waited for
    late.answer_new_round(room, 9.3)
    assert rounds.round == known + 2
    assert rounds.describe_progress()["phones"] == 4


def test_the_first_round_waits_longer_since_phones_get_the_networks_before_it():
    room = make_room()
    start_rounds(room)
    for seat in range(4):
        room.handle_round_request(seat, "{}", 0.0)
    room.start_fens_rounds()
    answer = json.dumps({"round": 0, "weights": encode_tensor_in_base64(room.rounds.table)})
    for seat in range(3):
        room.handle_round_request(seat, answer, 1.0)
    room.end_round_if_due(10.0)
    assert room.rounds.round == 0
    room.handle_round_request(3, answer, 11.0)  # a slow phone is in it
    assert room.rounds.round == 1
    assert room.rounds.describe_progress()["phones"] == 4


def test_the_rounds_do_not_wait_for_ever_for_a_phone_that_is_always_late():
    room = make_room()
    phones = start_rounds(room)
    now = 0.0
    while not room.rounds.is_over:
        now += 0.1
        known = room.rounds.round
        for phone in phones[:3]:
            phone.answer_new_round(room, now)
        late = {"round": max(0, known - 1), "weights": encode_tensor_in_base64(room.rounds.table)}
        room.handle_round_request(3, json.dumps(late), now)
        room.end_round_if_due(now)
    assert now < 60  # and not 50 rounds of three seconds


def test_a_room_is_read_from_its_file_again_and_from_no_other_file(tmp_path):
    file = tmp_path / "class.jsonl"
    first = make_room(file)
    seat = first.assign_next_seat()["seat"]
    first.accept_message(make_message(0), seat)
    again = Room(5, 7, 1, file)  # the settings in the file count
    assert again.about == first.about
    assert again.compute_secret_key_of_seat(0) == first.compute_secret_key_of_seat(0)
    accuracies = again.results.measure_combination_accuracies()
    assert accuracies == first.results.measure_combination_accuracies()
    assert again.serial != first.serial  # phones that stayed get the networks anew
    assert again.assign_next_seat()["seat"] > seat
    assert again.choose_labels_to_draw(4) == first.choose_labels_to_draw(4)
    assert sys.platform == "win32" or file.stat().st_mode & 0o77 == 0
    file.write_text("something else")
    with pytest.raises(UsageError):
        make_room(file)
