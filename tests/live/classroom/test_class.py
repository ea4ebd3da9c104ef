"""The class: what a message may be, what a room makes of it, and that its sums are those of one place."""

import base64
import json
import sys

import numpy as np
import pytest
import torch
from class_fixtures import a_message, a_room, make_joker
from hypothesis import given, settings
from hypothesis import strategies as st
from javascript import javascript

from fedlab_nb.data import federate, load
from fedlab_nb.errors import UsageError
from fedlab_nb.live.classroom.messages import (
    CLASSES,
    FULL,
    LIMIT,
    PARAMETERS,
    PIXELS,
    build_network,
    convert_class_sums_to_ridge_sums,
    encode_array_in_base64,
    encode_message,
    parse_message,
)
from fedlab_nb.live.classroom.rehearse import Student, make_simulated_students
from fedlab_nb.live.classroom.room import Room
from fedlab_nb.live.classroom.worth import (
    collect_test_drawings,
    draw_samples_with_same_sums,
    predict_by_all_combinations,
    project_class_means,
)
from fedlab_nb.methods import METHODS, afl, gauss
from fedlab_nb.methods.fens.aggregators import make_per_class_aggregator
from fedlab_nb.methods.fens.training import ProxySamples
from fedlab_nb.rng import generator


@pytest.fixture(scope="module")
def rehearsed():
    """A room after eleven simulated students and the teacher's joker."""
    room = a_room()
    for student in make_simulated_students(room, 11):
        room.accept_message(student.text, student.seat)
    seat, text = make_joker(room)
    room.add_malicious_message(text, seat)
    return room


# ------------------------------------------------------------------------------------------------------------- messages
def test_afl_and_gaussian_heads_from_messages_are_those_of_one_place():
    room, digits = a_room(), load("digits")
    for seat in range(40):
        room.accept_message(a_message(seat, given=0))
    x, y = digits.x_train[:240].flatten(1), digits.y_train[:240]
    own = [m.sums for m in room.messages.values()]
    total = sum(own[1:], own[0])
    rows = np.column_stack([x.double().numpy(), np.ones(len(x))])
    weights = np.linalg.solve(rows.T @ rows + np.eye(PIXELS + 1), rows.T @ np.eye(CLASSES)[y])
    np.testing.assert_allclose(
        afl.solve_classifier_weights(convert_class_sums_to_ridge_sums(total), 40, 0.0, 1.0).numpy(),
        weights,
        atol=1e-6,
    )
    there = gauss.measure_class_sums(x, y, CLASSES, "full")
    assert torch.equal(total.counts, there.counts) and torch.equal(total.second, there.second)
    said = predict_by_all_combinations([*room.messages.values()], digits.x_test.flatten(1))
    scores = (
        np.column_stack([digits.x_test.flatten(1).double().numpy(), np.ones(len(digits.x_test))])
        @ weights
    )
    assert (said["AFL"][1].numpy() == scores.argmax(1)).all()


def test_to_be_forgotten_is_never_to_have_sent(tmp_path):
    kept, without = a_room(tmp_path / "a.jsonl"), a_room()
    for seat in range(8):
        kept.accept_message(a_message(seat, model=build_network(seat)))
        if seat != 3:
            without.accept_message(a_message(seat, model=build_network(seat)))
    secret = kept.messages[3].text
    kept.forget_message(3)
    assert (
        kept.results.measure_combination_accuracies()
        == without.results.measure_combination_accuracies()
        and kept.describe_messages() == without.describe_messages()
    )
    assert secret not in (tmp_path / "a.jsonl").read_text()


CODED = base64.b64encode(np.full(PARAMETERS, np.nan, "<f4").tobytes()).decode()
BAD = {
    "no JSON": "{", "deep": "[" * 100_000, "a list": "[]", "lacking": '{"seat": 1}', "long": " " * (LIMIT + 1),
    "number": {"seat": 1.0}, "negative": {"seat": -1}, "truth": {"seat": True}, "nan": {"seat": float("nan")},
    "name": {"name": 7}, "name list": {"name": ["a"]}, "keep": {"keep": 1},
    "counts": {"counts": [1] * 9}, "fractions": {"counts": [0.5] * 10}, "nothing": {"counts": [0] * 10},
    "below": {"counts": [-1, 8] + [0] * 8}, "too many": {"counts": [7] * 10}, "NaN": {"network": CODED},
    "huge": {"network": base64.b64encode(np.full(PARAMETERS, 1e9, "<f4").tobytes()).decode()},
    "short": {"network": CODED[:400]}, "code": {"sums": "<script>"}, "object": {"sums": {"a": 1}},
    "empty": {"sums": "", "network": ""}, "label": {"test": base64.b64encode(bytes([0] * 64 + [10])).decode()},
    "bright": {"test": base64.b64encode(bytes([17] * 64 + [1])).decode()}, "cut": {"test": "AAAA"},
    "more": {"extra": 1}, "pickle": {"test": base64.b64encode(b"\x80\x04K\x01.").decode()},
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_wrong_message_is_one_sentence_and_changes_nothing(what):
    room, wrong = a_room(), BAD[what]
    text = wrong if isinstance(wrong, str) else json.dumps(json.loads(a_message(0)) | wrong)
    with pytest.raises(UsageError, match=r"^Message rejected: .*\.$"):
        room.accept_message(text)
    assert not room.messages and room.version == 1


def test_sums_above_their_counts_are_refused():
    about = json.loads(a_message(0, n=9, given=0))
    rows = (
        np.frombuffer(base64.b64decode(about["sums"]), "<f4")
        .reshape(-1, PIXELS + PIXELS * (PIXELS + 1) // 2)
        .copy()
    )
    held = [n for n in about["counts"] if n]
    rows[held.index(min(held)), 70] = max(held)
    assert min(held) < max(held)
    with pytest.raises(UsageError):
        parse_message(json.dumps(about | {"sums": base64.b64encode(rows.tobytes()).decode()}))


def test_a_seat_sends_once_and_the_same_message_again_is_no_other():
    room, text = a_room(), a_message(2)
    room.accept_message(text, 2)
    version = room.version
    room.accept_message(text, 2)
    assert room.version == version and len(room.messages) == 1
    for wrong, seat in [(a_message(2, given=2), 2), (a_message(4), 5)]:
        with pytest.raises(UsageError):
            room.accept_message(wrong, seat)


def test_a_message_comes_back_as_it_was_written():
    model, digits = build_network(7), load("digits")
    got = parse_message(a_message(1, n=20, given=5, model=model))
    assert torch.equal(got.x, digits.x_train[20:25].flatten(1)) and torch.equal(
        got.y, digits.y_train[20:25]
    )
    assert all(map(torch.equal, got.network.parameters(), model.parameters()))
    assert got.sums.counts.tolist() == list(got.counts) and sum(got.counts) == 15


def test_a_phone_s_sums_are_those_that_python_writes():
    """As the phone's page makes them, and as it takes them apart for “What your sums give away”."""
    digits = load("digits")
    x, y = digits.x_train[:9].flatten(1), digits.y_train[:9]
    text = json.loads(encode_message(0, "", x, y))
    code = "const sums = sumDrawings(Float32Array.from(x), y);"
    code += "return [encodeArray(packSums(sums)), [...sums.counts], measureAsText(4 * SUM_SIZE)];"
    sums, counts, size = javascript("sums message", code, x=x.flatten().tolist(), y=y.tolist())
    assert sums == text["sums"] and counts == text["counts"]
    assert len(sums) == pytest.approx(size * len(set(y.tolist())), abs=4 * len(set(y.tolist())))


# ---------------------------------------------------------------------------------------------------------------- seats
@given(st.floats(0.001, 1000), st.integers(5, 60), st.integers(0, 5), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_every_seat_draws_as_many_from_a_mix_of_its_own(alpha, drawings, seed, seat):
    room = Room(alpha, drawings, seed)
    labels = room.choose_labels_to_draw(seat)
    assert (
        len(labels) == drawings
        and set(labels) <= set(range(CLASSES))
        and labels == room.choose_labels_to_draw(seat)
    )


@given(st.floats(0.02, 0.99), st.integers(5, 30), st.integers(0, 5), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_a_seat_draws_two_or_three_classes_and_keeps_some_of_each(alpha, drawings, seed, seat):
    labels = Room(alpha, drawings, seed).choose_labels_to_draw(seat)
    kept = [label for i, label in enumerate(labels) if i % 4 != 3]
    assert 2 <= len(set(labels)) <= 3
    assert set(kept) == set(labels)
    assert min(labels.count(label) for label in set(labels)) >= 2
    assert labels.count(seat % CLASSES) == max(labels.count(label) for label in set(labels))


def test_alpha_says_how_many_classes_and_ten_seats_have_them_all():
    few, many = (
        np.mean([len(set(a_room(alpha=a).choose_labels_to_draw(k))) for k in range(30)])
        for a in (0.05, 100)
    )
    assert few < 3 and many > 7
    assert set().union(*map(a_room(alpha=0.05).choose_labels_to_draw, range(20, 30))) == set(
        range(CLASSES)
    )


# ----------------------------------------------------------------------------------------------------------- the result
def test_rows_made_from_sums_have_these_sums():
    own = parse_message(a_message(0, n=40, given=0)).sums
    for c in np.flatnonzero(own.counts.numpy()).tolist():
        rows = draw_samples_with_same_sums(own, c, np.random.default_rng(c))
        assert len(rows) == own.counts[c]
        np.testing.assert_allclose(rows.sum(0), own.sums[c].numpy(), atol=1e-9)
        np.testing.assert_allclose(rows.T @ rows, own.second[c].numpy(), atol=1e-9)


@pytest.mark.parametrize(
    ("n", "all_found"), [(1, True), (2, True), (3, True), (8, True), (15, True), (30, False)]
)
def test_sums_give_the_drawings_back(n, all_found):
    """All of them, to the pixel. With 30 this search gets stuck; a better one may not."""
    digits = load("digits")
    rows = digits.x_train[(digits.y_train == 3).nonzero()[:n, 0]].flatten(1)
    assert (recover(rows) == as_sixteenths(rows)) is all_found


def test_two_drawings_that_are_alike_are_found_twice():
    digits = load("digits")
    three = digits.x_train[(digits.y_train == 3).nonzero()[:3, 0]].flatten(1)
    rows = three[[0, 0, 1, 2]]
    assert recover(rows) == as_sixteenths(rows)


def as_sixteenths(rows):
    return sorted(tuple(row) for row in (FULL * rows).round().long().tolist())


def recover(rows):
    """What the phone's search finds in the sums of `rows [n, 64]`, all of one class."""
    sums = parse_message(encode_message(0, "", rows, torch.full([len(rows)], 3))).sums
    own = {"count": len(rows), "sums": sums.sums[3].tolist()}
    own["second"] = sums.second[3].flatten().tolist()
    found = javascript("recover", "return recoverDrawings(count, sums, second);", **own)
    return as_sixteenths(torch.tensor(found).view(-1, PIXELS))


def test_the_plane_is_that_of_all_drawings_in_one_place():
    room, n, clients = a_room(), 6, 9
    for seat in range(clients):
        room.accept_message(a_message(seat, n, given=0))
    digits = load("digits")
    x, y = (
        digits.x_train[: n * clients].flatten(1).double().numpy(),
        digits.y_train[: n * clients].numpy(),
    )
    shown, owner = project_class_means(room.messages.values()), np.arange(len(y)) // n
    _, singular, axes = np.linalg.svd(x - x.mean(0), full_matrices=False)
    np.testing.assert_allclose(
        shown["share"], (singular[:2] ** 2).sum() / (singular**2).sum(), atol=1e-9
    )
    pairs = [(k, c) for k in range(clients) for c in sorted({*y[owner == k]})]
    means = np.array([x[(owner == k) & (y == c)].mean(0) for k, c in pairs])
    assert [tuple(point[:2]) for point in shown["points"]] == pairs
    for axis, place in enumerate(np.array(shown["points"])[:, 2:].T):
        there = means @ axes[axis]
        there = (there - there.min()) / np.ptp(there)
        np.testing.assert_allclose(
            place, there if place @ there > place @ (1 - there) else 1 - there, atol=1e-9
        )
    alike = 0
    for (k, c), mean in zip(pairs, means, strict=True):
        others = [
            (np.linalg.norm(mean - other), d)
            for (j, d), other in zip(pairs, means, strict=True)
            if j != k
        ]
        alike += min(others)[1] == c
    assert 0 < shown["alike"] == alike < len(pairs)
    assert project_class_means([]) == {"points": [], "share": 0, "alike": 0}


def test_the_result_is_a_federation_with_clients_of_its_own(rehearsed, tmp_path):
    hidden = a_room()
    hidden.accept_message(json.dumps(json.loads(a_message(0)) | {"keep": False}))
    with pytest.raises(UsageError):
        hidden.make_arrays_of_class_dataset()
    np.savez(tmp_path / "class.npz", **rehearsed.make_arrays_of_class_dataset())
    fed = federate(tmp_path / "class.npz")
    assert fed.partition == "natural" and fed.clients == 11  # the joker is in no file
    assert fed.note.startswith("These are you: 11 offices of a class.")
    counts = {m.name: list(m.counts) for m in [*rehearsed.messages.values()][:11]}
    assert dict(zip(fed.dataset.client_names, fed.label_counts.tolist(), strict=True)) == counts
    assert len(fed.dataset.y_test) == len(collect_test_drawings(rehearsed.messages.values())[1])


def test_a_joker_s_network_is_taken_out_again(rehearsed):
    everybody, honest = ([*rehearsed.messages.values()][:end] for end in (12, 11))
    x = load("digits").x_test.flatten(1)
    all_said, said = (
        predict_by_all_combinations(everybody, x),
        predict_by_all_combinations(honest, x),
    )
    assert all_said["AFL"][0] == 12 and said["AFL"][0] == 11
    assert not torch.equal(all_said["FedAvg"][1], said["FedAvg"][1])
    states = [
        torch.cat([part.detach().flatten() for part in m.network.parameters()]) for m in honest
    ]
    sizes = torch.tensor([sum(m.counts) for m in honest])[:, None]
    for title, values in {
        "FedAvg": (torch.stack(states) * sizes).sum(0) / sizes.sum(),
        "FedAvg, median": torch.stack(states).median(0).values,
    }.items():
        model = build_network()
        torch.nn.utils.vector_to_parameters(values, model.parameters())
        assert torch.equal(model(x.view(-1, 1, 8, 8)).argmax(1), said[title][1])
    rows = {row["title"]: row for row in rehearsed.results.measure_combination_accuracies()}
    assert rows["Gaussian heads"]["digits"] > rows["Local only"]["digits"] + 0.2


def staying(room, clients=4, n=9, factor=1.0):
    """A room with as many networks, and the phones that sent them; a joker's parameters are `factor` as large."""
    digits, phones = load("digits"), []
    for seat in range(clients):
        many = n + seat
        rows = slice(many * seat, many * (seat + 1))
        model = build_network(seat)
        for part in model.parameters():
            part.data *= 1 if seat else factor
        room.accept_message(a_message(seat, many, given=0, model=model))
        x, y = digits.x_train[rows].flatten(1), digits.y_train[rows]
        phones.append(Student(seat, x, y, ""))
    room.start_fens_rounds()
    return phones


def test_the_tiny_rounds_are_those_of_fens():
    room = a_room()
    phones = staying(room)
    for now in range(room.rounds.describe_progress()["of"] + 4):  # the first round waits for others
        for phone in phones:
            phone.answer_new_round(room, float(now))
    assert room.rounds.round == room.rounds.describe_progress()["of"]
    fens, rule = METHODS["fens"](), make_per_class_aggregator(4, CLASSES)
    proxies = {phone.seat: ProxySamples(phone.logits.transpose(0, 1), phone.y) for phone in phones}
    for _ in fens.train_aggregator_in_place(rule, proxies, lambda k: generator(0, "x", k)):
        pass
    np.testing.assert_allclose(room.rounds.table, rule.get_client_weights(), atol=1e-5)
    assert float((room.rounds.table - 0.25).abs().max()) > 0.1
    x = load("digits").x_test
    said = rule(room.rounds.clients.logits(x).transpose(0, 1)).argmax(1)
    row = next(
        row for row in room.results.measure_combination_accuracies() if row["title"] == "FENS"
    )
    assert row["of"] == 4 and row["digits"] == pytest.approx(
        float((said == load("digits").y_test).double().mean())
    )


def test_who_leaves_is_left_out_and_who_is_forgotten_ends_the_rounds():
    room = a_room()
    phones = staying(room, factor=-100.0)
    for now in range(8):
        for phone in phones[: 4 if now < 6 else 3]:
            phone.answer_new_round(room, float(now))
    before = room.rounds.round
    assert before > 1 and room.rounds.describe_progress()["phones"] == 4
    for now in (10, 14, 18, 22):
        for phone in phones[:3]:
            phone.answer_new_round(room, float(now))
    assert room.rounds.describe_progress()["phones"] == 3 and room.rounds.round > before
    for wrong in ("[", "[]", json.dumps({"round": room.rounds.round, "weights": "AAAA"})):
        with pytest.raises(UsageError):
            room.handle_round_request(0, wrong, 30.0)
    with pytest.raises(UsageError):
        room.handle_round_request(9, "{}", 30.0)
    room.forget_message(3)
    assert room.rounds is None and room.handle_round_request(0, "{}", 31.0) == {}


def test_a_phone_that_was_late_once_is_waited_for_again():
    """Else the others, who are quicker, would end each round before its answer."""
    room = a_room()
    phones = staying(room)
    rounds = room.rounds
    late, others = phones[3], phones[:3]
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
    assert rounds.round == known + 1 and rounds.expected == {0, 1, 2}
    text = {"round": known, "weights": encode_array_in_base64(rounds.table)}
    room.handle_round_request(
        late.seat, json.dumps(text), 9.1
    )  # the answer to the round that is over
    assert rounds.round == known + 1 and rounds.expected == {0, 1, 2, 3}
    for phone in others:
        phone.answer_new_round(room, 9.2)
    assert rounds.round == known + 1  # it is waited for
    late.answer_new_round(room, 9.3)
    assert rounds.round == known + 2 and rounds.describe_progress()["phones"] == 4


def test_the_first_round_waits_longer_since_phones_get_the_networks_before_it():
    room = a_room()
    staying(room)
    for seat in range(4):
        room.handle_round_request(seat, "{}", 0.0)
    room.start_fens_rounds()
    answer = json.dumps({"round": 0, "weights": encode_array_in_base64(room.rounds.table)})
    for seat in range(3):
        room.handle_round_request(seat, answer, 1.0)
    room.end_round_if_due(10.0)
    assert room.rounds.round == 0
    room.handle_round_request(3, answer, 11.0)  # a slow phone is in it
    assert room.rounds.round == 1 and room.rounds.describe_progress()["phones"] == 4


def test_the_rounds_do_not_wait_for_ever_for_a_phone_that_is_always_late():
    room = a_room()
    phones = staying(room)
    now = 0.0
    while not room.rounds.is_over:
        now += 0.1
        known = room.rounds.round
        for phone in phones[:3]:
            phone.answer_new_round(room, now)
        late = {"round": max(0, known - 1), "weights": encode_array_in_base64(room.rounds.table)}
        room.handle_round_request(3, json.dumps(late), now)
        room.end_round_if_due(now)
    assert now < 60  # and not 50 rounds of three seconds


def test_what_is_kept_is_there_again_and_nothing_else(tmp_path):
    file = tmp_path / "class.jsonl"
    first = a_room(file)
    seat, text = first.assign_next_seat()["seat"], a_message(0)
    first.accept_message(text, seat)
    again = Room(5, 7, 1, file)
    assert again.about == first.about and again.compute_seat_key(0) == first.compute_seat_key(0)
    assert (
        again.results.measure_combination_accuracies()
        == first.results.measure_combination_accuracies()
    )
    assert again.serial != first.serial  # phones that stayed get the networks anew
    assert again.assign_next_seat()["seat"] > seat and again.choose_labels_to_draw(
        4
    ) == first.choose_labels_to_draw(4)
    assert sys.platform == "win32" or file.stat().st_mode & 0o77 == 0
    file.write_text("something else")
    with pytest.raises(UsageError):
        a_room(file)
