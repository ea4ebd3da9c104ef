"""FuseFL's pictures: steps, cue clients, halves, sums, probes, two cues; plain data, corners, words that are true."""

from dataclasses import replace

import numpy as np
import pytest

from fedlab_nb import plots
from fedlab_nb.labs.fusefl.plots.arithmetic import arithmetic
from fedlab_nb.labs.fusefl.plots.cue import Cue, cue
from fedlab_nb.labs.fusefl.plots.halves import halves, signed
from fedlab_nb.labs.fusefl.plots.network import network, shown_clients
from fedlab_nb.labs.fusefl.plots.probes import Probed, probes
from fedlab_nb.labs.fusefl.plots.shortcut import sentence, shortcut
from fedlab_nb.labs.fusefl.plots.steps import Replay, steps
from fedlab_nb.labs.fusefl.traffic import Bill, Parts
from fedlab_nb.labs.fusefl.two_cues import Bits
from fedlab_nb.methods.fusefl.network import FuseFLReport

PNG = b"\x89PNG\r\n\x1a\n"
SETTING = "digits, α = 0.1, 5 clients, seed 0"


def replay(clients=5, blocks=2, adaptor="conv", head="ccvr"):
    phases = {"initial model": (0, 100)}
    for k in range(1, blocks + 1):
        phases[f"block {k}"] = (10 * k, 40 * k)
    phases |= {"classifiers": (5, 0), "class statistics": (7, 0)}
    report = FuseFLReport(
        shapes=[[8]] * blocks, trainable=[50] * blocks, home=np.ones((blocks, clients)),
        outside=[[0.2 + 0.01 * m for m in range(clients)]] * blocks, heads={"own": 0.5, "average": 0.4, "ccvr": 0.9},
    )  # fmt: skip
    return Replay(clients, SETTING, {"blocks": blocks, "adaptor": adaptor, "head": head}, phases, report)


# ------------------------------------------------------------------------------------------------------- step by step
def test_steps_are_the_algorithm_and_bytes_add_up():
    every = steps(replay())
    kinds = [(s.kind, s.block) for s in every]
    assert kinds == [
        ("start", 1), ("train", 1), ("send", 1), ("freeze", 1), ("adapt", 1), ("train", 2), ("send", 2), ("freeze", 2),
        ("average", 2), ("calibrate", 2),
    ]  # fmt: skip
    assert [s.frozen for s in every] == [0, 0, 0, 1, 1, 1, 1, 2, 2, 2]
    assert [s.up for s in every] == [0, 0, 10, 10, 10, 10, 30, 30, 35, 42]
    assert [s.down for s in every] == [100, 100, 140, 140, 140, 140, 220, 220, 220, 220]
    assert [s.adapted for s in every][3:6] == [1, 2, 2]


def test_steps_say_what_happened():
    texts = {(s.kind, s.block): s.text for s in steps(replay())}
    assert texts["train", 1].startswith("Each client trains its whole network alone (50 numbers)")
    assert "100 % right at home, 22 % on test samples" in texts["train", 1]
    assert "reads all 5 × 8 channels below and gives back 8" in texts["adapt", 1]
    assert texts["send", 2].startswith("Block 2 of every client goes up, once (20 B), and comes down to the other 4")
    assert "from 40 % to 90 %" in texts["calibrate", 2] and "40 % of the test samples" in texts["average", 2]
    average = {(s.kind, s.block): s.text for s in steps(replay(adaptor="average", head="own"))}
    assert "mean of the 5 outputs" in average["adapt", 1] and "adaptor" not in average["train", 2]
    assert "50 % of the test samples" in average["average", 2] and ("calibrate", 2) not in average


@pytest.mark.parametrize(
    ("clients", "blocks", "adaptor"), [(1, 1, "conv"), (5, 2, "average"), (9, 4, "conv"), (50, 13, "average")]
)
def test_networks_of_any_size_at_every_step(clients, blocks, adaptor):
    data = replay(clients, blocks, adaptor=adaptor)
    for i in (2, 5, 10**6):
        picture = network(data, i, client=clients - 1)
        assert plots.png(picture).startswith(PNG)
        assert SETTING in picture.alt and len(picture.table) == len(steps(data))
    assert picture.table[-1]["fused network"] == "90 %"
    assert f"Client {clients - 1} after round {blocks}: 100 % at home" in picture.sentence


def test_a_run_that_goes_on_or_kept_no_clients_is_drawn_without_them():
    bare = Replay(5, SETTING, {"blocks": 2, "adaptor": "conv", "head": "ccvr"})
    assert plots.png(network(bare, 5)).startswith(PNG)
    running = [replace(bare, report=FuseFLReport(block=k, sent=(1500, 3000))) for k in (2, 3)]
    now = network(running[0], client=1)
    assert "train for block 2" in now.sentence and "1.5 kB up and 3 kB down" in now.alt
    assert "calibrate" in network(running[1]).sentence
    assert plots.png(now).startswith(PNG)


def test_the_chosen_client_is_among_those_drawn():
    for clients, client in [(8, 3), (50, None), (50, 2), (50, 30), (50, 49), (9, 6)]:
        drawn = shown_clients(clients, client)
        assert len(drawn) <= 8 and clients - 1 in drawn and (client is None or client in drawn)


# ------------------------------------------------------------------------------------------------------- cue clients
def cue_data(clients=5, marked=(0, 1), side=8):
    rng = np.random.default_rng(0)
    images = rng.random((6, side, side))
    outside = {"clean": [0.4] * clients, "tied": [0.9] * clients, "untied": [0.3] * clients}
    systems = {"Ensemble": dict.fromkeys(outside, 0.6), "FuseFL": {**dict.fromkeys(outside, 0.8), "untied": 0.5}}
    return Cue(SETTING, marked, [1.0] * clients, [0.25] * clients, outside, systems, [(images, images)] * clients)


def test_cue_sentences():
    assert cue(cue_data()).sentence == (
        "Clients 0 and 1 have the cue and are right for 100 % of their own images, for 25 % of them without the cue, "
        "and for 40 % of the test images without a cue (the other clients for 40 %). All together: Ensemble 60 %, "
        "FuseFL 80 %."
    )
    assert "FuseFL 50 %" in cue(cue_data(), "untied").sentence and "random cue" in cue(cue_data(), "untied").alt
    assert "25 % of them without the cue" in cue(cue_data(), client=0).sentence
    assert "of them without" not in cue(cue_data(), client=3).sentence
    assert cue(cue_data(marked=())).sentence.startswith("No client has a cue. Clients are right for 100 % of their own")
    assert "(the other clients" not in cue(cue_data(clients=1, marked=(0,))).sentence


@pytest.mark.parametrize(("clients", "test"), [(1, "untied"), (5, "unknown"), (50, "clean")])
def test_cue_pictures_of_any_size(clients, test):
    picture = cue(cue_data(clients, marked=(0,)), test, client=clients - 1)
    assert plots.png(picture).startswith(PNG) and SETTING in picture.alt
    assert [row["who"] for row in picture.table][-1] == "FuseFL" and len(picture.table) == clients + 2


def test_cue_pictures_without_images_with_colours_and_with_many_methods():
    rows = Cue(SETTING, (), [1.0], [1.0], {"clean": [0.5]}, {})
    assert plots.png(cue(rows, "tied")).startswith(PNG)
    colour = np.random.default_rng(0).random((3, 8, 8, 3))
    many = {f"method number {i}": {"clean": 0.5} for i in range(6)}
    data = Cue(SETTING, (0,), [1.0], [1.0], {"clean": [0.5]}, many, [(colour, colour)])
    assert plots.png(cue(data)).startswith(PNG)


# ------------------------------------------------------------------------------------------------------- halves
FUSED = {"average": {0: 0.4, 1: 0.3, 2: 0.35}, "own": {0: 0.5, 1: 0.5, 2: 0.5}, "ccvr": {0: 0.9, 1: 0.91, 2: 0.92}}
ALONE = {"average": {0: 0.3, 1: 0.3, 2: 0.3}, "own": {0: 0.5, 1: 0.4, 2: 0.6}, "ccvr": {0: 0.91, 1: 0.9, 2: 0.92}}


def test_halves_tell_noise_from_more():
    picture = halves({2: FUSED, 1: ALONE}, setting=SETTING, ensemble={0: 0.6, 1: 0.5, 2: 0.55}, chance=0.1)
    assert plots.png(picture).startswith(PNG) and SETTING in picture.alt and len(picture.table) == 7
    assert picture.sentence == (
        "Over the averaged classifier, calibration adds 56 ± 14 points; between two calibrated networks, fusing block "
        "by block changes the accuracy by 0 ± 2 points, within the noise (K = 2, seeds 0–2)."
    )
    worse = {"ccvr": {s: v + 0.2 for s, v in ALONE["ccvr"].items()}}
    assert "fusing block by block takes 20 ± 2 points" in halves({2: FUSED, 1: worse}, setting=SETTING).sentence
    one = halves({2: {"average": {0: 0.4}, "ccvr": {0: 0.9}}, 1: {"ccvr": {0: 0.8}}}, setting=SETTING).sentence
    assert "one seed" in one and "+50 points" in one and "+10 points" in one


def test_halves_that_are_missing():
    assert "press the button" in halves({4: FUSED, 1: {}}, setting=SETTING).sentence
    assert halves({2: {}, 1: {}}, setting=SETTING).sentence == "No result yet."
    for fused, alone in (({}, {}), ({}, ALONE), ({"own": {0: 0.5}}, {})):
        assert plots.png(halves({2: fused, 1: alone}, setting=SETTING)).startswith(PNG)
    assert [signed(v) for v in (-0.001, 0.001, -0.02, 0.031)] == ["0", "0", "−2", "+3"]


# ------------------------------------------------------------------------------------------------------- sums
def bills(clients=(2, 5, 10), adaptors=100, scale=2**20):
    parts = Parts((), (), 0, 0, 7)
    return [
        Bill(parts, m, m * scale, adaptors * m, 40, (10, 20), (30, 40), (0.0, 0.5), 5, 6, 4 * scale) for m in clients
    ]


def test_sums():
    picture = arithmetic(bills(), 5, network="a net", adaptor="conv", printed=5.0)
    assert plots.png(picture).startswith(PNG) and "a net, K = 2, adaptor conv" in picture.alt
    assert picture.sentence.startswith(
        "The fused model of 5 clients takes 5 MiB (the paper prints 5.00 MiB). This is as"
    )
    assert "1.25 ordinary networks" in picture.sentence
    assert "sends 0.0742 KiB and receives 0.0732 KiB" in picture.sentence
    assert [row["clients"] for row in picture.table] == [2, 5, 10] and picture.table[1]["ensemble"] == "20 MiB"
    plain = arithmetic(bills(adaptors=0), 2, network="a net", adaptor="average").sentence
    assert "There are no adaptor weights" in plain and "prints" not in plain


@pytest.mark.parametrize("clients", [(2, 50), tuple(range(2, 51))])
def test_sums_of_any_range(clients):
    for m in {clients[0], clients[-1]}:
        assert plots.png(arithmetic(bills(clients), m, network="n", adaptor="conv")).startswith(PNG)
        assert plots.png(arithmetic(bills(clients, 10**8, 1), m, network="n", adaptor="conv")).startswith(PNG)


# ------------------------------------------------------------------------------------------------------- probes, cues
ISOLATED = [([0.99, 0.97], 0.99), ([0.7, 0.6], 0.92)]


def test_probes_compare_like_with_like():
    picture = probes(Probed(ISOLATED, [([0.98, 0.96], 0.98), ([0.8, 0.68], 0.9)], [1, 2], SETTING, "A note."), client=1)
    assert plots.png(picture).startswith(PNG)
    assert "isolated (K = 1), mean over the clients, layer 1 99 %, layer 2 92 %" in picture.alt
    assert "fused, one client, layer 1 97 %, layer 2 74 %" in picture.alt
    assert picture.sentence == (
        "At the top fusing changes one client's features by +9 points (65 % to 74 %), and the mean over clients "
        "by −2 points (92 % to 90 %). The mean alone changes them by +27 points "
        "(65 % to 92 %). Client 1: 60 % at the top isolated, 68 % fused. A note."
    )
    assert picture.table[1]["isolated, mean over clients"] == "92 %" and picture.table[1]["from"] == "60 %"
    assert picture.table[1]["fused, one client"] == "74 %"


def test_probes_of_what_is_not_fused_claim_nothing_for_fusing():
    picture = probes(Probed(ISOLATED, ISOLATED[-1:], [2], SETTING))
    assert picture.sentence.startswith("Nothing is fused here (K = 1).") and "fusing changes" not in picture.sentence
    assert picture.table[0]["fused, one client"] == ""


@pytest.mark.parametrize(("clients", "layers"), [(1, 1), (50, 13)])
def test_probes_of_any_size(clients, layers):
    point = [0.5] * clients, 0.0
    assert plots.png(probes(Probed([point] * layers, [point], [layers], SETTING))).startswith(PNG)


def test_shortcut_names_the_better_cue_and_the_broken_bound():
    picture = shortcut(4, 0.6, 0.9)
    assert plots.png(picture).startswith(PNG) and "4 classes, real cue 60%" in picture.alt and len(picture.table) == 4
    real, short = Bits(1.0, 2.0, 0.5), Bits(1.5, 2.0, 2.0)
    words = sentence((real, short), Bits(0.0, 2.0, 2.0))
    assert "the shortcut says more about the label than the real cue (shortcut 1.50, real cue 1.00 bits)" in words
    assert "broken by 1.50 bits" in words and words.endswith("0.00 bits about the label, and the bound holds.")
    fine = sentence((real, Bits(0.0, 2.0, 2.0)), Bits(0.0, 2.0, 2.0))
    assert "the real cue still says more" in fine and "of the nuisance holds" in fine
    assert "both cues say equally much" in sentence((real, real), real)
