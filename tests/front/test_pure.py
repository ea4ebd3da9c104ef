"""What the stage knows without a screen: moves, where tiles stand, and what the headline says."""

import math
import random
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from javascript import run_javascript

from fedlab_nb.data import PartitionEdits, federate, format_client_letters, load
from fedlab_nb.data.partition import measure_skew
from fedlab_nb.errors import SAMPLES
from fedlab_nb.front.vocabulary import (
    choose_words_for_clients_and_samples,
    choose_words_of_post_office_story,
)
from fedlab_nb.panels.controls import MOST_SEED
from fedlab_nb.panels.link import parse_settings_of_link
from fedlab_nb.plots import PartitionPicture

FEDERATION = "text federation"
TRANSPORT = "text federation selection state kernel_transport"
LAYOUT = "layout"
HEADLINE = "text headline"


@st.composite
def federations_with_moves(draw):
    """Labels, shards that hold each sample once, and moves of piles or of one class of them."""
    labels = draw(st.lists(st.integers(0, 3), min_size=6, max_size=40))
    clients = draw(st.integers(2, 5))
    rest = [draw(st.integers(0, clients - 1)) for _ in labels[clients:]]
    owners = [*range(clients), *rest]
    shards = [[i for i, owner in enumerate(owners) if owner == k] for k in range(clients)]
    moves = []
    for _ in range(draw(st.integers(0, 8))):
        start = draw(st.integers(0, clients - 1))
        end = (start + draw(st.integers(1, clients - 1))) % clients
        if draw(st.integers(0, 5)) == 0:
            end = None  # to nobody
        label = draw(st.none() | st.integers(0, 3))
        moves.append({"from": start, "label": label, "to": end})
    return labels, shards, moves


@settings(max_examples=3, deadline=None)
@given(st.lists(federations_with_moves(), min_size=40, max_size=40))
def test_moves_are_pythons_and_keep_every_sample_once(cases):
    code = (
        "return cases.map(([labels, shards, moves]) => {"
        "const text = writeMoves(moves);"
        "const again = readMoves(text, { clients: shards.length, classes: 4, seed: 0 });"
        "return { text, again, held: applyMoves(shards, labels, moves) }; })"
    )
    shown = run_javascript(FEDERATION, code, cases=cases)
    for (labels, shards, moves), answer in zip(cases, shown, strict=True):
        assert answer["again"] == {"moves": moves, "leftOut": []}
        arrays = [np.array(shard) for shard in shards]
        expected = PartitionEdits.parse(answer["text"]).apply_to_shards(arrays, np.array(labels))
        assert answer["held"] == [shard.tolist() for shard in expected]
        held = sorted(i for shard in answer["held"] for i in shard)
        if all(move["to"] is not None for move in moves):
            assert held == [*range(len(labels))]
        assert len(set(held)) == len(held)


def test_moves_are_said_in_words():
    classes = [{"name": "8", "plural": "eights"}, {"name": "cat"}]
    first = {"from": 4, "label": 0, "to": 3}
    code = "return describeMoves(moves, classes)"
    for moves, says in (
        ([first], "You moved E’s eights to D; kept when α changes."),
        ([{**first, "label": None}], "You moved E’s pile to D; kept when α changes."),
        (
            [first, {"from": 0, "label": 1, "to": None}],
            "You made 2 moves, the last one A’s samples of “cat” out of the data;"
            " kept when α changes.",
        ),
    ):
        assert run_javascript(FEDERATION, code, moves=moves, classes=classes) == says


@pytest.mark.parametrize(
    ("shards", "move", "is_kept"),
    [
        ([[0, 1], [2, 3]], {"from": 0, "label": None, "to": 1}, True),
        ([[0, 1], [2, 3]], {"from": 0, "label": 0, "to": 1}, True),  # it has no other class
        (
            [[0, 1, 2], [3]],
            {"from": 0, "label": 0, "to": 1},
            False,
        ),  # another class is what is left
        ([[0, 1, 2], [3]], {"from": 0, "label": 1, "to": 1}, False),
    ],
)
def test_a_sample_that_stays_behind_is_explained(shards, move, is_kept):
    """Samples 0 and 1 are of class 0, 2 and 3 of class 1."""
    code = """
      const labels = [0, 0, 1, 1];
      const piles = applyMoves(shards, labels, [move]);
      const isKept = isLastSampleKept(move, piles, labels);
      return [isKept, describeMoves([move], [{ name: "0" }, { name: "1" }], isKept ? "office" : "")];
    """
    kept, says = run_javascript(FEDERATION, code, shards=shards, move=move)
    assert kept == is_kept
    assert ("One sample stays: every office needs one." in says) == is_kept


@pytest.mark.parametrize(
    ("move", "seeds", "says"),
    [
        ({"to": 1}, {"local": 1}, "alone B gets 25\xa0% right now, 20\xa0% before."),
        ({"to": 0}, {"local": 1}, "alone A still gets 10\xa0% right."),
        ({"to": None}, {"local": 1}, ""),  # out of the data
        ({"to": 1}, {"local": 10}, ""),  # more seeds than before: another number without any move
    ],
)
def test_after_a_move_the_client_that_received_it_is_compared_with_itself(move, seeds, says):
    code = "return describeEffectOfMove(move, now, before)"
    now = {"seeds": seeds, "each": [0.101, 0.25]}
    before = {"seeds": {"local": 1}, "each": [0.1, 0.2]}
    assert run_javascript(FEDERATION, code, move=move, now=now, before=before) == says


def test_once_it_is_known_the_effect_of_a_move_is_said_in_place_of_what_is_kept():
    code = """return describeMoves([{ from: 1, label: 0, to: 0 }], [{ name: "3", plural: "threes" }],
      "client", "alone A still gets 10 % right.")"""
    assert (
        run_javascript(FEDERATION, code)
        == "You moved B’s threes to A: alone A still gets 10 % right."
    )


def test_bars_of_a_method_that_sends_nothing_are_not_called_messages():
    code = "return lists.map((names) => nameBars(names.map((name) => ({ name })), people))"
    lists = [["local"], ["local", "fens"], ["fens"]]
    assert run_javascript("dom text flight_plan bars", code, lists=lists, people=PEOPLE) == [
        "What one office alone gets right",
        "What the messages make",
        "What the messages make",
    ]


def test_accuracies_of_the_setting_before_are_kept_until_the_next():
    """First a result; then the hand moves: it is stale, and a first and a second method answer; then once more."""
    code = "const record = createAccuracyHistory(); return calls.map(([shares, isStale]) => record(shares, isStale))"
    calls = [
        [{"fens": 0.8, "afl": 0.9}, False],
        [{"fens": 0.8, "afl": 0.9}, True],
        [{"afl": 0.7}, False],
        [{"afl": 0.7, "fens": 0.6}, False],
        [{"afl": 0.7, "fens": 0.6}, True],
        [{"afl": 0.5}, False],
    ]
    first = {"fens": 0.8, "afl": 0.9}
    second = {"afl": 0.7, "fens": 0.6}
    remembered = run_javascript("dom text flight_plan bars", code, calls=calls)
    assert remembered == [{}, {}, first, first, first, second]


def test_piles_that_were_sent_ahead_are_shown_before_the_kernel_answers():
    """Of four samples and two clients, at two α. What the kernel says counts, where it is something else."""
    code = """
      const told = [];
      const asked = [];
      const buffer = (values) => new DataView(new Uint16Array(values).buffer);
      const data = { train: { labels: [0, 0, 1, 1] }, classes: ["a", "b"] };
      const sent = [];
      const model = { send: (message) => { asked.push(message.kind); sent.push(message); } };
      const transport = createKernelTransport(model, data);
      transport.connect(({ kind, shards }) => told.push(shards ?? kind));
      let revision = 0;
      const deal = (alpha, moves = [], seed = 4) => {
        revision += 1;
        transport.send({ kind: "deal", revision, setting: { alpha, clients: 2, seed, moves } });
      };
      const answer = (shards) => {
        const samples = new DataView(new Uint32Array(shards.flat()).buffer);
        const sizes = shards.map((shard) => shard.length);
        const { question, setting } = sent.at(-1);
        transport.receive({ kind: "federation", question, setting, sizes }, [samples]);
      };
      const steps = {};
      const step = (name, act) => {
        told.length = 0;
        act();
        steps[name] = [...told];
      };
      step("nothing sent ahead", () => deal(1));
      step("the kernel answers", () => answer([[0, 1], [2, 3]]));
      const ahead = [0, 1, 0, 1, 1, 0, 0, 1];
      const send = (alphas, owners) => {
        transport.receive({ kind: "partitions", clients: 2, seed: 4, alphas }, [buffer(owners)]);
      };
      step("sent ahead", () => send([0.1, 1], ahead));
      step("at once", () => deal(0.1));
      step("the same from the kernel", () => answer([[0, 2], [1, 3]]));
      step("another α", () => deal(1));
      step("something else from the kernel", () => answer([[2, 3], [0, 1]]));
      step("with a move", () => deal(0.1, [{ from: 1, label: 1, to: 0 }]));
      step("an α between", () => { answer([[0, 2, 3], [1]]); told.length = 0; deal(0.2); });
      step("another seed", () => { answer([[0, 1], [2, 3]]); told.length = 0; deal(0.1, [], 5); });
      step("preview", () => told.push(transport.preview({ clients: 2, seed: 4 }, 0.1)));
      step("withdrawn", () => send([], []));
      step("then", () => { answer([[0, 1], [2, 3]]); told.length = 0; deal(0.1); });
      transport.destroy();
      return { steps, asked };
    """
    got = run_javascript(TRANSPORT, code)
    assert got["steps"] == {
        "nothing sent ahead": [],
        "the kernel answers": [[[0, 1], [2, 3]]],
        "sent ahead": ["redraw"],
        "at once": [[[0, 2], [1, 3]]],
        "the same from the kernel": [],
        "another α": [[[1, 2], [0, 3]]],
        "something else from the kernel": [[[2, 3], [0, 1]]],
        "with a move": [[[0, 2, 3], [1]]],
        "an α between": [],
        "another seed": [],
        "preview": [[[1, 1], [1, 1]]],
        "withdrawn": ["redraw"],
        "then": [],
    }
    assert got["asked"] == ["deal"] * 7


def test_a_hand_during_a_run_is_told_to_the_kernel_and_the_run_stays_the_job_in_sight():
    """Nothing waits to say that Python is busy: the run itself says how far it is."""
    code = """
      let timers = 0;
      globalThis.setTimeout = () => (timers += 1);
      const sent = [];
      const transport = createKernelTransport({ send: (message) => sent.push(message) }, {});
      const setting = { alpha: 1, clients: 2, seed: 4, moves: [] };
      const train = (more) => transport.send({ kind: "train", revision: 1, setting, ...more });
      train({ isRun: false, isAfterRun: true });
      const waiting = timers;
      train({ isRun: true });
      return { kinds: sent.map((message) => message.kind), waiting, timers };
    """
    got = run_javascript(TRANSPORT, code)
    assert got == {"kinds": ["train", "train"], "waiting": 0, "timers": 1}


TWO_VIEWS = """
  const data = { train: { labels: [0, 0, 1, 1] }, classes: ["a", "b"] };
  const kernel = []; // what it has been sent and has not answered yet
  const truth = { setting: { alpha: 1, clients: 2, seed: 4, moves: [] } };
  const shards = (alpha) => (alpha < 1 ? [[0, 1], [2, 3]] : [[0, 2], [1, 3]]);
  function makeView(name) {
    const view = { revisions: new Map(), dealt: null, setting: null };
    const transport = createKernelTransport({ send: (message) => kernel.push(message) }, data, name);
    const revisionOf = (setting) => {
      const key = makeSettingKey(setting);
      if (!view.revisions.has(key)) view.revisions.set(key, view.revisions.size + 1);
      return view.revisions.get(key);
    };
    view.tell = (kind, setting, isEcho) => {
      view.setting = setting;
      transport.send({ kind, revision: revisionOf(setting), setting, isEcho });
    };
    view.hand = (alpha, kind = "deal") => view.tell(kind, { alpha, clients: 2, seed: 4, moves: [] });
    transport.connect((message) => { // as the stage does
      if (message.kind === "setting") view.tell("follow", message.setting);
      const isNew = message.kind === "federation" && message.revision === revisionOf(view.setting);
      if (isNew) view.dealt = message.shards;
    });
    view.transport = transport;
    view.tell("deal", truth.setting, true);
    return view;
  }
  const views = [makeView("one"), makeView("two")];
  const seen = [];
  /** The kernel answers the oldest message, and all views hear it. */
  function answer() {
    const { setting, question, isEcho } = kernel.shift();
    if (!isEcho) truth.setting = setting;
    const all = shards(truth.setting.alpha);
    const samples = new DataView(new Uint32Array(all.flat()).buffer);
    const content = { kind: "federation", setting: truth.setting, question, sizes: [2, 2] };
    for (const { transport } of views) transport.receive(content, [samples]);
    seen.push(views.map(({ setting }) => setting.alpha));
  }
  const answerAll = () => { while (kernel.length) answer(); };
  answerAll();
  seen.length = 0;
"""
STATE_OF_VIEWS = """
  for (const { transport } of views) transport.destroy();
  return { seen, alphas: views.map(({ setting }) => setting.alpha), dealt: views.map(({ dealt }) => dealt) };
"""
SHARDS_AT_SMALL_ALPHA = [[0, 1], [2, 3]]
SHARDS_AT_LARGE_ALPHA = [[0, 2], [1, 3]]


def test_a_second_view_of_a_panel_follows_the_first_and_shows_no_others_piles():
    """Both views number their settings by themselves: the second one's number 2 is not the first one's."""
    code = f"""{TWO_VIEWS}
      views[0].hand(0.1);
      answerAll();
      views[1].hand(3);
      answerAll();
      views[0].hand(0.2);
      answerAll();
      {STATE_OF_VIEWS}"""
    got = run_javascript(TRANSPORT, code)
    assert got["alphas"] == [0.2, 0.2]
    assert got["dealt"] == [SHARDS_AT_SMALL_ALPHA, SHARDS_AT_SMALL_ALPHA]
    assert got["seen"] == [[0.1, 0.1], [3, 3], [0.2, 0.2]]


def test_a_view_with_a_newer_gesture_is_not_set_back_by_an_older_answer():
    code = f"""{TWO_VIEWS}
      views[0].hand(0.1);
      views[0].hand(0.2);
      views[0].hand(2); // waits, in the place of the one before
      views[1].hand(0.3);
      answer(); // 0.1
      answer(); // 0.3, of the other view
      answerAll();
      {STATE_OF_VIEWS}"""
    got = run_javascript(TRANSPORT, code)
    assert [first for first, _ in got["seen"]] == [2, 2, 2]
    assert got["alphas"] == [2, 2]
    assert got["dealt"] == [SHARDS_AT_LARGE_ALPHA, SHARDS_AT_LARGE_ALPHA]


def test_a_views_next_question_waits_for_the_answer_to_its_own():
    code = f"""{TWO_VIEWS}
      views[1].hand(0.3);
      views[0].hand(0.1);
      views[0].hand(0.2); // waits
      answer(); // 0.3, of the other view
      const asked = kernel.map(({{ setting }}) => setting.alpha);
      for (const {{ transport }} of views) transport.destroy();
      return asked;
    """
    assert run_javascript(TRANSPORT, code) == [0.1]


def test_a_view_that_has_asked_for_a_run_keeps_its_setting_until_it_is_heard():
    code = f"""{TWO_VIEWS}
      views[0].hand(0.1);
      views[1].tell("deal", truth.setting, true); // an echo of before
      views[0].hand(0.5, "train");
      answerAll();
      {STATE_OF_VIEWS}"""
    got = run_javascript(TRANSPORT, code)
    assert [first for first, _ in got["seen"]] == [0.5, 0.5, 0.5]
    assert got["alphas"] == [0.5, 0.5]
    assert got["dealt"] == [SHARDS_AT_SMALL_ALPHA, SHARDS_AT_SMALL_ALPHA]


def test_a_link_with_moves_makes_pythons_federation():
    labels = load("digits").y_train.tolist()
    code = (
        "const { moves } = readMoves(text, { clients: 10, classes: 10, seed: 4 });"
        "return applyMoves(deal(labels, 10, 0.1, 4), labels, moves)"
    )
    text = "E>A,B0>C,F>G"
    shown = run_javascript(f"{FEDERATION} learn deal", code, labels=labels, text=text)
    federation = federate("digits", alpha=0.1, clients=10, seed=4, moves=text)
    assert shown == [shard.tolist() for shard in federation.shards]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_fifty_throws_of_the_page_travel_in_its_link_and_are_undone(seed):
    """As the page does it: events, a link, the command beneath; and back, step by step, to the sample."""
    draws = random.Random(seed)
    throws = []
    for _ in range(50):
        giver, taker = draws.sample(range(10), 2)
        label = draws.choice([None, *range(10)])
        throws.append({"kind": "move", "from": giver, "to": taker, "label": label})
    code = """
      const start = deal(labels, 10, 0.1, 4);
      const hold = ({ moves }) => applyMoves(start, labels, moves);
      let state = FIRST_STATE;
      const seen = [];
      for (const event of throws) {
        seen.push(JSON.stringify(hold(state)));
        state = reduce(state, event);
      }
      const held = hold(state);
      const command = writeMoves(state.moves);
      const link = command.replaceAll(" ", "");
      const { moves, leftOut } = readMoves(link, { clients: 10, classes: 10, seed: 4 });
      const again = hold({ moves });
      const isUndone = [];
      while (seen.length > 0) {
        state = reduce(state, { kind: "undo" });
        isUndone.push(JSON.stringify(hold(state)) === seen.pop());
      }
      return { held, command, link, again, leftOut, isUndone };
    """
    labels = load("digits").y_train.tolist()
    got = run_javascript(f"{FEDERATION} state learn deal", code, labels=labels, throws=throws)
    assert sorted(i for shard in got["held"] for i in shard) == [*range(len(labels))]
    assert got["again"] == got["held"] and got["leftOut"] == []
    assert got["isUndone"] == [True] * 50
    setting = {"alpha": 0.1, "clients": 10, "seed": 4}
    link = parse_settings_of_link(f"playground.html#alpha=0.1&m=10&seed=4&moves={got['link']}")
    for moves in (got["command"], link["moves"]):
        federation = federate("digits", moves=moves, **setting)
        assert got["held"] == [shard.tolist() for shard in federation.shards]


def test_what_a_link_cannot_say_is_left_out():
    """And it is said what: nobody takes what is seen for the whole link."""
    text = "E>E, A>Z, A9>B, b>C, A*, C2>B, B=north"
    code = "return texts.map((text) => readMoves(text, { clients: 3, classes: 4, seed: 4 }))"
    shown, other_seed = run_javascript(FEDERATION, code, texts=[text, "7: A>B"])
    assert shown["moves"] == [{"from": 2, "label": 2, "to": 1}]
    assert shown["leftOut"] == ["E>E", "A>Z", "A9>B", "b>C", "A*", "B=north"]
    assert other_seed == {"moves": [], "leftOut": ["7: A>B"]}


def test_a_sample_that_two_clients_hold_is_a_tile_in_both_piles():
    """A double has its pile, and its original keeps its own: no tile takes the other's place."""
    piles = [[0, 1], [2], [2]]
    code = (
        "const counts = countLabels(piles, labels, 2);"
        "return { counts, layout: layOutPiles({ piles, labels, counts, width: 300, height: 200 }) }"
    )
    got = run_javascript(f"{FEDERATION} {LAYOUT}", code, piles=piles, labels=[0, 0, 1])
    assert got["counts"] == [[2, 0], [0, 1], [0, 1]]
    tiles = got["layout"]["tiles"]
    assert [(tile["client"], tile["sample"]) for tile in tiles] == [(0, 0), (0, 1), (1, 2), (2, 2)]
    assert len({tile["slot"] for tile in tiles}) == 4
    assert [tile["slot"] for tile in tiles[:3]] == [0, 1, 2]


def test_a_wrong_number_is_said():
    code = "return [words.map((text) => describeWrongNumber(text, 0, MOST_SEED)), MOST_SEED]"
    words = ["0", "4", "1000000", "1000001", "-1", "2.5", "", "x"]
    said, most = run_javascript("text state", code, words=words)
    assert said[:3] == ["", "", ""] and most == MOST_SEED
    assert said[3:5] == ["at most 1,000,000", "at least 0"]
    assert said[5:] == ["a whole number"] * 3


def test_letters_are_pythons():
    shown = run_javascript("text", "return numbers.map(letter)", numbers=[*range(120)])
    assert shown == [format_client_letters(k) for k in range(120)]


def test_what_was_moved_by_hand_stays_at_another_alpha_and_goes_with_other_clients():
    code = (
        "const moved = reduce(FIRST_STATE, { kind: 'move', from: 0, to: 1, label: null });"
        "const events = [['alpha', 3], ['clients', 12], ['seed', 5]];"
        "return events.map(([kind, value]) => reduce(moved, { kind, value }).moves.length)"
    )
    assert run_javascript("state", code) == [1, 0, 0]


PICTURE = """
const card = (name, said, verdict) => ({ name, said, verdict });
return composePicture({
  headline: 'A <b> & "c"', setting: "digits", link: "playground.html#alpha=0.1",
  wall: { address: "data:,", width: 600, height: 200 },
  owners: [{ name: "A", score: "20 %" }, { name: "B", score: "" }],
  bars: { title: "What the messages make",
          rows: [{ short: "FENS", colour: "#00f", share: 0.84, band: { mean: 0.8, half: 0.3 }, before: null },
                 { short: "AFL", colour: "#0f0", share: null, band: null, before: null },
                 { short: "Mean", colour: "#f00", share: 0.45, band: null, before: 0.37 }], about: "one seed" },
  image: null, about: "a nine", servers: [card("FENS", "9", "right")], clients: [card("A", "a long name", "wrong")],
  colours: { ground: "#fff", ink: "#000", soft: "#555", line: "#ddd", card: "#eee", good: "#080", track: "#eee" },
  font: "serif",
})
"""


def test_a_saved_picture_is_xml_and_says_what_the_stage_says():
    root = ElementTree.fromstring(run_javascript("text federation save_picture", PICTURE))
    space = "{http://www.w3.org/2000/svg}"
    texts = [one.text for one in root.iter(f"{space}text")]
    for text in (
        'A <b> & "c"',
        "84\u00a0%",
        "–",
        "FENS",
        "digits",
        "playground.html#alpha=0.1",
        "20 %",
    ):
        assert text in texts, text
    band, value = [one for one in root.iter(f"{space}rect") if one.get("rx") == "3"][1:3]
    track = next(one for one in root.iter(f"{space}rect") if one.get("rx") == "3")
    wide = float(track.get("width"))
    assert float(value.get("width")) == pytest.approx(0.84 * wide)
    assert float(band.get("width")) == pytest.approx(0.5 * wide)  # cut at 100 %
    (tick,) = [one for one in root.iter(f"{space}rect") if one.get("width") == "2"]
    middle = float(tick.get("x")) + 1
    assert middle == pytest.approx(float(track.get("x")) + 0.37 * wide)


def test_a_long_headline_of_a_saved_picture_is_broken_between_words():
    """Of 20 pixels, a bold letter is taken to be 13.2 wide: 66 pixels are five letters."""
    code = "return sentences.map((sentence) => breakIntoLines(sentence, 66, 20))"
    sentences = ["one", "one two three", "a b c d", "unbreakable a", ""]
    assert run_javascript("federation text save_picture", code, sentences=sentences) == [
        ["one"],
        ["one", "two", "three"],
        ["a b c", "d"],
        ["unbreakable", "a"],
        [""],
    ]


def test_a_channel_of_a_recording_is_a_line_in_its_band():
    code = "return placeLine([0, 3, -3, 30], 96, 32, 16)"
    assert run_javascript("sample", code) == [[0, 40], [32, 32], [64, 48], [96, 32]]


@pytest.mark.parametrize(
    ("clients", "samples", "width", "height"),
    [
        (1, 40, 300, 200),
        (10, 1437, 596, 250),
        (10, 1437, 340, 190),
        (100, 1437, 940, 270),
        (100, 5000, 600, 250),
    ],
)
def test_tiles_fit_keep_apart_and_stand_for_every_sample(clients, samples, width, height):
    draws = np.random.default_rng(0)
    labels = draws.integers(0, 10, samples).tolist()
    owners = draws.integers(0, clients, samples)
    owners[:clients] = range(clients)
    piles = []
    counts = []
    for k in range(clients):
        pile = np.flatnonzero(owners == k).tolist()
        piles.append(sorted(pile, key=lambda i: (labels[i], i)))
        counts.append(np.bincount(np.array(labels)[pile], minlength=10).tolist())
    given_values = dict(piles=piles, labels=labels, counts=counts, width=width, height=height)
    code = "return layOutPiles({ piles, labels, counts, width, height })"
    layout = run_javascript(LAYOUT, code, **given_values)
    side = layout["side"]
    column = layout["column"]
    samples_per_tile = layout["many"]
    for k in range(clients):
        tiles = [tile for tile in layout["tiles"] if tile["client"] == k]
        places = {(round(tile["x"], 3), round(tile["y"], 3)) for tile in tiles}
        assert len(places) == len(tiles)
        for tile in tiles:
            assert k * column - 1e-6 <= tile["x"] <= (k + 1) * column - side + 1e-6
            assert -1e-6 <= tile["y"] <= height - side + 1e-6
        for c in range(10):
            tiles_of_class = [tile for tile in tiles if tile["label"] == c]
            assert len(tiles_of_class) == math.ceil(counts[k][c] / samples_per_tile)
    if clients == 10 and width == 596:
        assert samples_per_tile == 1


def test_more_than_ten_classes_are_the_ten_largest_and_others():
    classes = [{"name": str(c)} for c in range(12)]
    labels = []
    for c in range(12):
        labels += [c] * (1 + c)
    code = "return groupLabels(labels, classes)"
    shown = run_javascript(FEDERATION, code, labels=labels, classes=classes)
    assert [group["name"] for group in shown["classes"]] == [*map(str, range(2, 12)), "others"]
    assert shown["groups"] == [10, 10, *range(10)]


PEOPLE = {
    "one": "office",
    "many": "offices",
    "things": "digits",
    "thing": "digit",
    "kind": "digit",
    "kinds": "digits",
}
METHODS = [
    {"name": "local", "short": "Each alone", "phrase": "Local only"},
    {"name": "fedavg", "short": "FedAvg", "phrase": "FedAvg"},
    {"name": "logits", "short": "Mean of logits", "phrase": "The mean of logits"},
    {"name": "afl", "short": "AFL", "phrase": "AFL"},
]
CLASSES = [{"name": "0", "plural": "zeros"}, {"name": "1"}]


@pytest.mark.parametrize(
    ("counts", "results", "says"),
    [
        ([[5, 5], [9, 0], [8, 0]], None, "Two of 3 offices know only zeros: B and C."),
        (
            [[5, 5], [9, 0], [49, 1]],
            None,
            "Two of 3 offices know hardly anything but zeros: B and C.",
        ),
        ([[5, 5], [0, 9]], None, "One office knows a single digit."),
        ([[5, 5], [1, 49]], None, "One office knows hardly more than a single digit."),
        ([[5, 5], [6, 4]], None, "Every office sees both digits."),
        ([[5, 5]], None, None),
        (
            [[5, 5], [9, 0], [8, 0]],
            {"accuracies": {"logits": 0.1}, "calls": {"logits": [30, 0]}, "each": []},
            "Two offices know only zeros, and shout. The mean of logits calls 30 of 30 digits “0”.",
        ),
        (
            [[5, 0], [9, 0], [0, 7], [3, 3]],
            {"accuracies": {"logits": 0.1}, "calls": {"logits": [1, 29]}, "each": []},
            "Three offices know a single digit each, and the one with “1” shouts."
            " The mean of logits calls 29 of 30 digits “1”.",
        ),
        (
            [[50, 0], [49, 1], [48, 1], [0, 7], [3, 3]],
            {"accuracies": {"logits": 0.1}, "calls": {"logits": [1, 29]}, "each": []},
            "Four offices know hardly more than a single digit each, and the one with “1” shouts."
            " The mean of logits calls 29 of 30 digits “1”.",
        ),
        (
            [[50, 0], [49, 0], [0, 7], [3, 3]],
            {"accuracies": {"logits": 0.1}, "calls": {"logits": [30, 0]}, "each": []},
            "Two offices know only zeros, and shout. The mean of logits calls 30 of 30 digits “0”.",
        ),
        (
            [[5, 5], [9, 1], [8, 2]],
            {"accuracies": {"logits": 0.1}, "calls": {"logits": [20, 10]}, "each": []},
            "The mean of logits calls 20 of 30 digits “0”.",
        ),
        (
            [[5, 5], [6, 4]],
            {"accuracies": {"fedavg": 0.3, "afl": 0.9}, "calls": {}, "each": [0.4, 0.2]},
            "The average of 2 networks gets 30\xa0% right: office A alone gets 40\xa0%.",
        ),
        (
            [[5, 5], [6, 4]],
            {
                "accuracies": {"local": 0.99, "fedavg": 0.8, "afl": 0.9},
                "calls": {},
                "each": [0.4, 0.2],
            },
            "AFL gets most right: 90\xa0%, 10 points ahead of FedAvg.",
        ),
        (
            [[5, 5], [6, 4]],
            {"accuracies": {"logits": 0.8, "afl": 0.9}, "calls": {}, "each": [0.4, 0.2]},
            "AFL gets most right: 90\xa0%, 10 points ahead of the mean of logits.",
        ),
        (
            [[5, 5], [6, 4]],
            {"accuracies": {"logits": 0.9, "afl": 0.8}, "calls": {}, "each": [0.4, 0.2]},
            "The mean of logits gets most right: 90\xa0%, 10 points ahead of AFL.",
        ),
        (
            [[5, 5], [6, 4]],
            {"accuracies": {"fedavg": 0.88, "afl": 0.9}, "calls": {}, "each": [0.4, 0.2]},
            "Here it hardly matters how they are combined: 88\xa0% to 90\xa0% right.",
        ),
        (
            [[5, 5], [6, 4]],
            {"accuracies": {"fedavg": 0.5, "afl": 0.9, "logits": 0.88}, "calls": {}, "each": [0.4]},
            "Of the joint models, FedAvg loses most: 50\xa0% right, where AFL gets 90\xa0%.",
        ),
        ([[5, 5], [6, 4]], {"accuracies": {"afl": 0.9}, "calls": {}, "each": []}, None),
        (
            [[5, 0], [9, 0], [3, 3]],
            {"accuracies": {"local": 0.23}, "calls": {}, "each": [0.4, 0.2, 0.1]},
            "Two of 3 offices know only zeros: A and B.",
        ),
    ],
)
def test_the_headline_says_the_first_clear_finding(counts, results, says):
    facts = dict(counts=counts, results=results, people=PEOPLE, methods=METHODS, classes=CLASSES)
    assert run_javascript(HEADLINE, "return findHeadline(facts)", facts=facts) == says


@pytest.mark.parametrize(
    ("name", "accuracies", "calls", "says"),
    [
        (
            "fedavg",
            {"fedavg": 0.3, "afl": 0.9},
            {"fedavg": [30, 0]},
            "The average of 2 networks gets 30 % right: office A alone gets 40 %.",
        ),
        (
            "fedavg",
            {"fedavg": 0.5, "afl": 0.9},
            {"fedavg": [25, 5]},
            "FedAvg calls 25 of 30 digits “0”.",
        ),
        # Another mean shouts: that is not said of this one.
        ("fedavg", {"fedavg": 0.5}, {"logits": [30, 0]}, "FedAvg gets 50 % right."),
        (
            "afl",
            {"afl": 0.84, "logits": 0.98},
            {"logits": [30, 0]},
            "AFL gets 84 % right, 14 points behind the mean of logits.",
        ),
        (
            "logits",
            {"afl": 0.84, "logits": 0.98, "fedavg": 0.7},
            {},
            "The mean of logits gets 98 % right, 14 points ahead of AFL.",
        ),
        (
            "afl",
            {"afl": 0.94, "logits": 0.98},
            {},
            "AFL gets 94 % right, about as many as the mean of logits.",
        ),
        # It has not been measured: what the piles show.
        ("afl", {"local": 0.3, "logits": 0.98}, {}, "Every office sees both digits."),
    ],
)
def test_while_a_method_is_shown_the_headline_speaks_of_it(name, accuracies, calls, says):
    results = {"accuracies": accuracies, "calls": calls, "each": [0.4, 0.2]}
    facts = dict(counts=[[5, 5], [6, 4]], results=results, people=PEOPLE)
    facts |= {"methods": METHODS, "classes": CLASSES}
    said = run_javascript(
        HEADLINE, "return findHeadlineOfMethod(facts, name)", facts=facts, name=name
    )
    assert said == says.replace(" %", "\xa0%")
    facts["results"] = None
    before = run_javascript(
        HEADLINE, "return findHeadlineOfMethod(facts, name)", facts=facts, name=name
    )
    assert before == "Every office sees both digits."


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 12).flatmap(
        lambda classes: st.lists(
            st.lists(st.integers(0, 300), min_size=classes, max_size=classes),
            min_size=1,
            max_size=9,
        )
    )
)
def test_the_effective_number_of_classes_is_that_of_the_package(counts):
    said = run_javascript(HEADLINE, "return countEffectiveClasses(counts)", counts=counts)
    assert said == pytest.approx(measure_skew(np.array(counts)).effective_classes)


@pytest.mark.parametrize(
    ("dataset", "alpha", "seed"),
    [
        ("digits", 0.5, 0), ("digits", 0.5, 3), ("digits", 1, 4), ("digits", 10, 0), ("digits", 100, 0),
        ("heart", 1, 0),
    ],
)  # fmt: skip
def test_headline_and_sentence_say_the_same_number_of_classes(dataset, alpha, seed):
    """The stage's headline is JavaScript, the sentence below the saved picture is Python."""
    data = load(dataset)
    clients = 10 if dataset == "digits" else 4
    federation = federate(data, clients=clients, alpha=alpha, seed=seed, partition="dirichlet")
    counts = federation.label_counts.tolist()
    names = [{"name": name} for name in data.class_names]
    facts = dict(counts=counts, results=None, people=PEOPLE, methods=METHODS, classes=names)
    headline = run_javascript(HEADLINE, "return findHeadline(facts)", facts=facts)
    sentence = PartitionPicture().show(federation, setting="").sentence
    effectively = rf"effectively sees about ([\d.]+) of {len(names)} "
    (number,) = re.findall(effectively, sentence)
    if headline.startswith("Every office sees"):
        assert float(number) == len(names)
    else:
        assert re.findall(effectively, headline) == [number], (headline, sentence)


def test_not_every_office_sees_all_digits_where_one_lacks_a_digit():
    counts = [[10, 10, 10], [10, 10, 0]] + [[10, 10, 10]] * 30
    names = [{"name": name} for name in "012"]
    facts = dict(counts=counts, results=None, people=PEOPLE, methods=METHODS, classes=names)
    said = run_javascript(HEADLINE, "return findHeadline(facts)", facts=facts)
    assert said == "Each office effectively sees about 3.0 of 3 digits."
    facts["counts"] = [row for row in counts if all(row)]
    said = run_javascript(HEADLINE, "return findHeadline(facts)", facts=facts)
    assert said == "Every office sees all 3 digits."


def test_the_story_is_an_image_that_one_or_two_know_and_the_crowd_drowns():
    said = {
        "methods": {"fedavg": [1, 1, 0, 1], "logits": [1, 1, 1, 1], "afl": [0, 1, 0, 0]},
        "clients": [[0, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 1]],
        "truth": [0, 0, 0, 0],
    }
    # 0: one expert, both means wrong, AFL right; 1: nobody saves it; 2: FedAvg is right; 3: three know it.
    code = "return chooseStory(said, shown)"
    assert run_javascript(HEADLINE, code, said=said, shown=1) == 0
    said["methods"]["afl"] = [1, 1, 0, 0]
    assert run_javascript(HEADLINE, code, said=said, shown=1) is None


def test_an_image_that_tells_a_story_stays_and_another_one_says_why_it_is_shown():
    """Image 1 has two experts, image 0 one: it would be chosen over image 0."""
    said = {
        "methods": {"fedavg": [1, 1], "afl": [0, 0]},
        "clients": [[0, 0], [1, 0], [1, 1], [1, 1]],
        "truth": [0, 0],
    }
    code = "return [0, 1].map((shown) => chooseStory(said, shown))"
    assert run_javascript(HEADLINE, code, said=said) == [0, 1]
    del said["methods"]["fedavg"]
    code = "return [0, 1].map((image) => describeStory(said, image, people))"
    assert run_javascript(HEADLINE, code, said=said, people=PEOPLE) == [
        "Chosen for you: only office A gets it right.",
        "Chosen for you: only offices A and B get it right.",
    ]
    said["methods"]["logits"] = [1, 1]
    first, _ = run_javascript(HEADLINE, code, said=said, people=PEOPLE)
    assert first == "Chosen for you: only office A gets it right, and no mean does."


@pytest.mark.parametrize("step", [1, 0.5, 2 / 3])
def test_a_side_is_a_multiple_of_the_step(step):
    """Squares of whole pixels: a step is a pixel of the screen."""
    code = "return columns.map((column) => chooseTile([[300, 40]], column, 200, step))"
    columns = [2.5, 5.94, 9.4, 31.3, 140.2]
    tiles = run_javascript(LAYOUT, code, columns=columns, step=step)
    for column, tile in zip(columns, tiles, strict=True):
        steps = tile["side"] / step
        assert steps == pytest.approx(round(steps))
        assert steps >= 1
        assert tile["across"] * tile["side"] <= max(3, column)


@pytest.mark.parametrize(
    ("dataset", "axes", "owner", "says"),
    [
        ("heart:hungary", 1, None, "This patient is really “no”, and is not in the training data."),
        ("mails", 1, "C", "This mail is really “no”; client C holds it."),
        ("watch", 2, None, "This recording is really “no”, and is not in the training data."),
        ("patients.csv", 1, None, "This row is really “no”, and is not in the training data."),
        ("glyphs", 3, "B", "This image is really “no”; client B holds it."),
        ("digits", 3, None, "A no that nobody has trained on."),
        ("digits", 3, "A", "A no, held by client A."),
    ],
)
def test_a_sample_is_said_in_the_words_of_its_data(dataset, axes, owner, says):
    people = choose_words_for_clients_and_samples(dataset, SAMPLES[axes])
    code = 'return describeSample(people, "no", owner)'
    assert run_javascript("text", code, people=people, owner=owner) == says


def test_only_who_holds_digits_is_an_office_and_only_in_the_story():
    story_words = choose_words_of_post_office_story("digits", "images")
    stage_words = choose_words_for_clients_and_samples("digits", "images")
    assert story_words["many"] == "offices"
    assert stage_words == {**story_words, "one": "client", "many": "clients"}
    story_words = choose_words_of_post_office_story("heart", "feature rows")
    assert story_words == choose_words_for_clients_and_samples("heart", "feature rows")


def test_the_headline_speaks_of_patients():
    people = choose_words_for_clients_and_samples("heart", SAMPLES[1])
    results = {"accuracies": {"logits": 0.4}, "calls": {"logits": [64, 116]}, "each": []}
    classes = [{"name": "no"}, {"name": "yes"}]
    facts = dict(counts=[[5, 5], [6, 4]], results=results, people=people)
    facts |= {"methods": METHODS, "classes": classes}
    said = run_javascript(HEADLINE, "return findHeadline(facts)", facts=facts)
    assert said == "The mean of logits calls 116 of 180 patients “yes”."


def test_a_headline_names_a_mean_in_full_and_has_one_full_stop():
    """Its short name, with a full stop of its own, is for a column."""
    methods = [
        {"name": "fedet", "short": "Fed-ET", "phrase": "Fed-ET"},
        {"name": "ensemble", "short": "Mean prob.", "phrase": "The mean of probabilities"},
    ]
    results = {"accuracies": {"fedet": 0.85, "ensemble": 0.66}, "calls": {}, "each": []}
    facts = dict(
        counts=[[5, 5], [6, 4]],
        results=results,
        people=choose_words_for_clients_and_samples("digits", SAMPLES[3]),
    )
    facts |= {"methods": methods, "classes": [{"name": "0"}, {"name": "1"}]}
    said = run_javascript(HEADLINE, "return findHeadline(facts)", facts=facts).replace("\xa0", " ")
    assert said == "Fed-ET gets most right: 85 %, 19 points ahead of the mean of probabilities."


def test_the_hint_asks_for_run_until_there_are_results():
    code = "return describeFirstSteps({ about: '', canDragAlpha: false, trainsNetworks: true, ...about })"

    def describe(**about):
        return run_javascript(HEADLINE, code, about=about)

    drag = "Drag a pile to a neighbour."
    assert describe(needsRun=True, isDone=False) == f"{drag} Press Run for results."
    assert describe(needsRun=True, isDone=True) == drag
    for is_done in (False, True):
        assert describe(needsRun=False, isDone=is_done) == f"{drag} Results follow."
    freely = describe(about="Digits.", canDragAlpha=True, needsRun=True, isDone=True)
    assert freely == "Digits. Drag a pile to a neighbour, or drag α."
    assert "in a notebook" in describe(needsRun=True, isDone=False, trainsNetworks=False)
