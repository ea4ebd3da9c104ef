"""The flight is the ledger: legs, bytes, messages and phases of every method, and nothing that was not sent."""

import functools
import math
from itertools import pairwise

import pytest
from javascript import run_javascript
from method_runs import make_context, make_fast_knobs

from fedlab_nb.comm import Ledger
from fedlab_nb.front.flight import CARGO, GESTURES, describe_flight, describe_flights
from fedlab_nb.front.vocabulary import OFFICES
from fedlab_nb.methods import METHODS
from fedlab_nb.studies.experiment import exhaust_generator

PLAN = "text flight_plan"
GESTURE = {
    "fedavg": "blend",
    "fedlpa": "blend",
    "fisher_merge": "blend",
    "regmean": "blend",
    "matching": "blend",
    "ties": "blend",
    "ensemble": "keep",
    "fedov": "keep",
    "fens": "notes",
    "afl": "sums",
    "deepafl": "sums",
    "gauss": "sums",
    "fedpft": "sums",
    "feddf": "images",
    "fedkd": "images",
    "fedkt": "images",
    "fedet": "images",
    "fadi": "images",
    "fdafl": "images",
    "dense": "images",
    "coboosting": "images",
    "distilled": "images",
    "fedcvae": "images",
    "centralized": "images",
    "fusefl": "rounds",
    "fedma": "rounds",
    "fedavg_multi": "rounds",
    "fedprox": "rounds",
    "scaffold": "rounds",
    "fednova": "rounds",
    "fedadam": "rounds",
    "fedyogi": "rounds",
    "moon": "rounds",
    "dsfl": "rounds",
    "fedgkt": "rounds",
}


@functools.cache
def run_for_ledger(name):
    """The ledger of a small run of the method."""
    run = make_context(share=0.3)
    exhaust_generator(METHODS[name].configure(**make_fast_knobs(name)).run(run))
    return run.link.ledger


def sum_by_leg(ledger):
    """{(phase, way): (bytes of each client, messages of each client)} of a ledger, in its order."""
    legs = {}
    for row in ledger.rows():
        key = row["phase"], row["direction"]
        sizes, messages = legs.setdefault(key, ([0] * ledger.clients, [0] * ledger.clients))
        sizes[row["client"]] += row["bytes"]
        messages[row["client"]] += row["messages"]
    return legs


def plan_flight(flight):
    """The steps of a flight, with times and sentences."""
    code = "return planFlight(flight, people)"
    return run_javascript(PLAN, code, flight=flight, people=OFFICES)


@functools.cache
def plan_flight_of_method(name):
    return plan_flight(describe_flight(name, run_for_ledger(name)))


SENDING = [name for name in METHODS if name != "local"]


def test_a_method_that_sends_nothing_has_no_flight():
    assert describe_flight("local", run_for_ledger("local")) is None
    ledgers = {"local": run_for_ledger("local"), "fedavg": run_for_ledger("fedavg")}
    assert list(describe_flights(ledgers)) == ["fedavg"]


@pytest.mark.parametrize("name", SENDING)
def test_legs_are_the_ledgers_phases_in_order(name):
    flight = describe_flight(name, run_for_ledger(name))
    legs = {(leg["phase"], leg["way"]): (leg["bytes"], leg["messages"]) for leg in flight["legs"]}
    assert list(legs.items()) == list(sum_by_leg(run_for_ledger(name)).items())
    assert len(legs) == len(flight["legs"])
    assert flight["clients"] == run_for_ledger(name).clients
    for leg in flight["legs"]:  # what each carries is known, and has words in its direction
        assert leg["phase"].rstrip("0123456789 ") in CARGO
        assert leg["words"] != leg["phase"]


@pytest.mark.parametrize("name", SENDING)
def test_each_method_has_its_gesture(name):
    """FedLPA, Fed-ET and FedDF have further rounds in the small run, so theirs is the gesture of rounds."""
    flight = describe_flight(name, run_for_ledger(name))
    has_rounds = make_fast_knobs(name).get("rounds", 1) > 1 and name in ("fedlpa", "fedet", "feddf")
    assert flight["gesture"] in GESTURES
    assert flight["gesture"] == ("rounds" if has_rounds else GESTURE[name])


@pytest.mark.parametrize(
    ("name", "phase", "gesture"),
    [("fedlpa", "posteriors", "blend"), ("fedet", "small models", "images")],
)
def test_without_further_rounds_it_is_the_methods_own_gesture(name, phase, gesture):
    ledger = Ledger(2)
    for k in range(2):
        ledger.add(k, "down", "initial model", 100)
        ledger.add(k, "up", phase, 100)
    assert describe_flight(name, ledger)["gesture"] == gesture


@pytest.mark.parametrize("name", SENDING)
def test_the_plan_shows_the_ledger_and_nothing_else(name):
    plan = plan_flight_of_method(name)
    shown = {}
    for step in plan["steps"]:
        for hop in step["hops"]:
            assert hop["way"] in [leg["way"] for leg in step["legs"]]
            assert hop["cargo"] in [leg["cargo"] for leg in step["legs"]]
            counts = zip(hop["clients"], hop["bytes"], hop["messages"], strict=True)
            for client, size, messages in counts:
                assert messages > 0
                total = shown.setdefault((hop["way"], client), [0, 0])
                total[0] += size
                total[1] += messages
    expected = {}
    for row in run_for_ledger(name).rows():
        total = expected.setdefault((row["direction"], row["client"]), [0, 0])
        total[0] += row["bytes"]
        total[1] += row["messages"]
    assert shown == expected
    legs = [(leg["phase"], leg["way"]) for step in plan["steps"] for leg in step["legs"]]
    assert legs == list(sum_by_leg(run_for_ledger(name)))
    for step in plan["steps"]:
        assert bool(step["hops"]) == (step["kind"] in ("send", "exchange"))
        assert step["text"].endswith(".")
        assert "undefined" not in step["text"] + step["title"]


@pytest.mark.parametrize("name", SENDING)
def test_steps_follow_each_other_long_enough_to_be_read(name):
    """1.2 seconds at least, and a second for 15 letters of the words that are shown while it plays."""
    plan = plan_flight_of_method(name)
    steps = plan["steps"]
    assert plan["duration"] % 20 == 0  # a place of the slider
    assert steps[0]["start"] == 0
    assert steps[-1]["end"] == plan["duration"]
    assert all(earlier["end"] == later["start"] for earlier, later in pairwise(steps))
    for step in steps:
        assert step["start"] < step["still"] < step["end"]
        times = []
        for hop in step["hops"]:
            times += [hop["start"], hop["end"]]
        assert times == sorted(times)
        if times:
            assert times[0] == pytest.approx(step["start"])
            assert times[-1] == pytest.approx(step["end"])
        shown = f"{step['title']}. {step['brief']}".strip()
        assert step["end"] - step["start"] >= max(1200, 1000 * len(shown) / 15)
    again = plan_flight(describe_flight(name, run_for_ledger(name)))
    assert again == plan


@pytest.mark.parametrize("name", ["fedavg", "ensemble", "afl", "gauss"])
def test_one_message_takes_a_few_seconds(name):
    assert plan_flight_of_method(name)["duration"] <= 9000


@pytest.mark.parametrize("name", SENDING)
def test_bytes_tick_up_to_the_ledgers(name):
    plan = plan_flight_of_method(name)
    code = "return times.map((time) => countArrived(plan, time))"
    times = [*range(0, plan["duration"], 60), plan["duration"]]
    counts = run_javascript(PLAN, code, plan=plan, times=times)
    ledger = run_for_ledger(name)
    assert (counts[-1]["up"], counts[-1]["down"]) == (ledger.up, ledger.down)
    assert counts[-1]["messages"] == sum(row["messages"] for row in ledger.rows())
    assert counts[0] == {"up": 0, "down": 0, "messages": 0}
    for one, other in pairwise(counts):
        assert all(one[key] <= other[key] for key in one)


@pytest.mark.parametrize("name", SENDING)
def test_no_frame_shows_a_message_that_the_ledger_has_not(name):
    """Each message in the air belongs to a hop of that moment, and is from another one of its clients."""
    plan = plan_flight_of_method(name)
    code = (
        "const size = { width: 600, height: 260, top: 40 };"
        "const isFlying = ({ kind, client }) =>"
        " client !== undefined && ['envelope', 'note'].includes(kind);"
        "return times.map((time) =>"
        " makeScene(plan, time, size, colours).filter(isFlying).map(({ client }) => client))"
    )
    times = [*range(0, plan["duration"], 50), plan["duration"]]
    given = {"plan": plan, "times": times, "colours": ["#3f90da"] * plan["clients"]}
    frames = run_javascript(f"{PLAN} flight_scene", code, **given)
    hops = [hop for step in plan["steps"] for hop in step["hops"]]
    seen = set()
    for time, clients in zip(times, frames, strict=True):
        senders = set()
        for hop in hops:
            if hop["start"] <= time < hop["end"]:
                senders.update(hop["clients"])
        assert len(clients) == len(set(clients))
        assert set(clients) <= senders
        seen |= set(clients)
    assert seen == {row["client"] for row in run_for_ledger(name).rows()}


def test_every_phase_that_is_named_has_words_where_it_travels():
    for phase, cargo in CARGO.items():
        assert cargo.up or cargo.down, phase


def test_fens_keeps_the_gate_open_and_fedavg_does_not():
    kinds = [step["kind"] for step in plan_flight_of_method("fens")["steps"]]
    assert kinds == ["send", "work", "send", "send", "exchange", "gate", "end"]
    kinds = [step["kind"] for step in plan_flight_of_method("fedavg")["steps"]]
    assert kinds == ["send", "work", "send", "gate", "end"]


def test_sentences_have_the_ledgers_numbers():
    ledger = Ledger(10)
    for k in range(10):
        ledger.add(k, "down", "initial model", 26280)
        ledger.add(k, "up", "local models", 26280)
    for k in range(10):
        ledger.add(k, "down", "ensemble", 69760)
        ledger.add(k, "down", "aggregator", 20000, message_count=50)
        ledger.add(k, "up", "aggregator", 20000, message_count=50)
    plan = plan_flight(describe_flight("fens", ledger))
    texts = [step["text"].replace("\xa0", " ") for step in plan["steps"]]
    assert texts == [
        "Each office gets an untrained network: 10 × 26.3 kB.",
        "Each office trains a network alone, on its own pile.",
        "Each office sends its network: 10 × 26.3 kB.",
        "Each office gets the networks of all, packed to 27 % of their size: 10 × 69.8 kB.",
        "50 times each office gets the weights of the voices and sends its own: 400 kB in all.",
        "510 messages came from 10 offices, 463 kB in all.",
        "All 10 networks stay; the notes have taught how much each counts.",
    ]
    code = 'return summarise(plan, "FENS")'
    said = run_javascript(PLAN, code, plan=plan).replace("\xa0", " ")
    assert said == "FENS: up to 51 messages each, 463 kB up and 1.16 MB down."


def test_a_client_that_was_not_asked_sends_nothing():
    ledger = Ledger(4)
    for k in (1, 3):
        ledger.add(k, "up", "local models", 100 + k)
    plan = plan_flight(describe_flight("fedavg", ledger))
    (hop,) = plan["steps"][1]["hops"]
    assert (hop["clients"], hop["bytes"]) == ([1, 3], [101, 103])
    text = (
        "Each of 2 offices (A and C take no part) sends its network, once:"
        " 2 × 101 B to 103 B, 204 B in all."
    )
    assert plan["steps"][1]["text"].replace("\xa0", " ") == text
    assert plan["steps"][-1]["text"] == "The 2 networks are mixed into one network."


def test_several_messages_that_nothing_answers_are_no_rounds():
    ledger = Ledger(2)
    for k in range(2):
        ledger.add(k, "up", "students", 300, message_count=3)
    flight = describe_flight("fedkt", ledger)
    plan = plan_flight(flight)
    assert (flight["gesture"], flight["source"]) == ("images", "public")
    step = plan["steps"][1]
    assert (step["kind"], step["title"], len(step["hops"])) == ("send", "Several messages each", 3)
    text = "Each office sends its students, in 3 messages: 2 × 300 B."
    assert step["text"].replace("\xa0", " ") == text


def test_trips_of_many_messages_stand_for_several():
    """Twelve rounds of different clients are shown as five trips; the shares of all trips add up."""
    ledger = Ledger(3)
    for k, count in enumerate((12, 7, 1)):
        ledger.add(k, "down", "rounds", 10 * count + 1, message_count=count)
        ledger.add(k, "up", "rounds", 30 * count, message_count=count)
    plan = plan_flight(describe_flight("fedavg_multi", ledger))
    step = next(step for step in plan["steps"] if step["kind"] == "exchange")
    assert step["rounds"] == 12
    assert len(step["hops"]) == 10
    assert [hop["round"] for hop in step["hops"][::2]] == [3, 5, 8, 10, 12]
    assert [hop["clients"] for hop in step["hops"][::2]] == [[0, 1, 2], *[[0, 1]] * 4]


@pytest.mark.parametrize("name", SENDING)
def test_the_still_of_rounds_has_the_bytes_of_the_rounds_that_it_counts(name):
    """The still shows some of an exchange's rounds, the same share of its bytes, and nothing of the next round."""
    plan = plan_flight_of_method(name)
    code = (
        "const size = { width: 280, height: 158, top: 20 };"
        "const shapes = makeScene(plan, time, size, colours);"
        "const texts = shapes.filter(({ kind }) => kind === 'text').map(({ text }) => text);"
        "return { texts, arrived: countArrived(plan, time) }"
    )
    before = {"up": 0, "down": 0, "messages": 0}  # what has arrived before a step
    for step in plan["steps"]:
        if step["kind"] == "exchange":
            given = {"plan": plan, "time": step["still"], "colours": ["#3f90da"] * plan["clients"]}
            still = run_javascript(f"{PLAN} flight_scene", code, **given)
            count = next(text for text in still["texts"] if text.endswith(f" of {step['rounds']}"))
            done = int(count.split()[0])
            trips = min(step["rounds"], 5)
            assert done == math.ceil(step["rounds"] / trips)  # the first trip, rounded up
            expected = dict(before)
            for leg in step["legs"]:
                for messages, size in zip(leg["messages"], leg["bytes"], strict=True):
                    sent = math.ceil(messages / trips)
                    expected["messages"] += sent
                    expected[leg["way"]] += size * sent // max(messages, 1)
            assert still["arrived"] == expected
        for leg in step["legs"]:
            before[leg["way"]] += sum(leg["bytes"])
            before["messages"] += sum(leg["messages"])


def test_rounds_are_counted_once_they_are_over():
    """Two rounds of one client: half-way through the first none is over, at the end of the second both."""
    ledger = Ledger(1)
    ledger.add(0, "down", "rounds", 200, message_count=2)
    ledger.add(0, "up", "rounds", 200, message_count=2)
    plan = plan_flight(describe_flight("fedavg_multi", ledger))
    step = next(step for step in plan["steps"] if step["kind"] == "exchange")
    code = (
        "const size = { width: 280, height: 158, top: 20 };"
        "return times.map((time) => makeScene(plan, time, size, ['#3f90da'])"
        ".filter(({ kind }) => kind === 'text').map(({ text }) => text)"
        ".find((text) => text.endsWith(' of 2')))"
    )
    hops = step["hops"]
    times = [hop["start"] + 0.5 * (hop["end"] - hop["start"]) for hop in hops]
    given = {"plan": plan, "times": times}
    counts = run_javascript(f"{PLAN} flight_scene", code, **given)
    assert counts == ["0 of 2", "0 of 2", "1 of 2", "1 of 2"]
