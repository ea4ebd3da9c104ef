"""What the browser computes: sums to rounding, networks to rounding, accuracies as the package's own runs have them."""

from statistics import fmean

import numpy as np
import pytest
import torch
from javascript import run_javascript

import fedlab_nb as fl
from fedlab_nb.data import federate, load
from fedlab_nb.live import page
from fedlab_nb.methods import afl, gauss
from fedlab_nb.methods.fens.aggregators import make_trainable_aggregator
from fedlab_nb.methods.fens.model import FensModel, quantise_experts
from fedlab_nb.methods.fens.training import ProxySamples
from fedlab_nb.models import build, copy_model_state
from fedlab_nb.panels.arithmetic import explain_answer_as_client_sum, explain_mean_of_client_logits
from fedlab_nb.rng import make_torch_generator
from fedlab_nb.studies.settings import make_recipe_for_classroom
from fedlab_nb.training import ClientModels, Recipe, train_clients_in_place

FLOATS = "const floats = (rows) => new Float32Array(rows); "
PIXELS = (
    "const pixels = (text) =>"
    " Float32Array.from(atob(text), (one) => one.charCodeAt(0) / live.levels); "
)


def flatten_parameters(state):
    """All numbers of a network's state, one after another, as a numpy array."""
    return torch.cat([part.flatten() for part in state.values()]).numpy()


def measure_gap(shown, expected):
    """The largest difference between numbers of the page and those of Python."""
    return np.abs(np.array(shown).flatten() - np.asarray(expected).flatten()).max()


@pytest.fixture(scope="module")
def shards():
    """Training parts (x [n, 64], y [n]) of a skewed federation's clients."""
    digits = load("digits")
    federation = federate("digits", alpha=0.1, clients=4, seed=4)
    return [
        (digits.x_train[rows].flatten(1), digits.y_train[rows]) for rows, _ in federation.split(0.1)
    ]


def convert_shards_to_lists(shards):
    return {
        "xs": [x.flatten().tolist() for x, _ in shards],
        "ys": [y.tolist() for _, y in shards],
    }


def test_the_recipe_is_the_classrooms():
    shown = run_javascript("learn", "return RECIPE")
    assert make_recipe_for_classroom(len(load("digits").y_train)) == Recipe(
        epochs=shown["epochs"],
        batch_size=shown["batch"],
        optimizer="sgd",
        lr=shown["rate"],
        momentum=shown["momentum"],
        weight_decay=shown["decay"],
    )


def test_fens_has_the_classrooms_values():
    fens = fl.METHODS["fens"]()
    assert run_javascript("learn sums ledger run", "return FENS") == {
        "rounds": fens.rounds,
        "rate": fens.eta_s,
        "first": fens.beta1,
        "second": fens.beta2,
        "floor": fens.tau,
    }
    assert (fens.bits, fens.eta_l, fens.aggregator, fens.start) == (8, 1.0, "per_class", "average")


def test_afl_is_pythons(shards):
    code = FLOATS + "const sums = xs.map((x, k) => aflSums(gaussSums(floats(x), ys[k], 10, 64)));"
    code += "return [...aflSolve(sums.reduce(addSums, null), sums.length)]"
    sums = [afl.RidgeSums.measure(x, y, 10).copy_with_added_ridge(1.0) for x, y in shards]
    knobs = fl.METHODS["afl"]()
    expected = afl.solve_classifier_weights(
        sum(sums[1:], sums[0]), len(sums), knobs.gamma, knobs.rho
    )
    shown = run_javascript("sums", code, **convert_shards_to_lists(shards))
    assert measure_gap(shown, expected) < 1e-10


@pytest.mark.parametrize("has_all_clients", [True, False])
def test_gaussian_heads_are_pythons(shards, has_all_clients):
    """Of all clients, and of one that has two classes, one of them with a single sample."""
    digits = load("digits")
    test = digits.x_test.flatten(1)[:40]
    classes_with_scores = 10
    if not has_all_clients:
        zeros = (digits.y_train == 0).nonzero()[:15, 0]
        a_one = (digits.y_train == 1).nonzero()[:1, 0]
        rows = torch.cat([zeros, a_one])
        shards = [(digits.x_train[rows].flatten(1), digits.y_train[rows])]
        classes_with_scores = 2
    code = FLOATS + "const sums = xs.map((x, k) => gaussSums(floats(x), ys[k], 10, 64));"
    code += "const made = gaussSolve(sums.reduce(addSums, null));"
    code += "return [...gaussScores(made, floats(test))]"
    shown = run_javascript(
        "sums", code, test=test.flatten().tolist(), **convert_shards_to_lists(shards)
    )
    sums = [gauss.measure_class_sums(x, y, 10, "full") for x, y in shards]
    knobs = fl.METHODS["gauss"]()
    scorer = gauss.make_class_scorer(sum(sums[1:], sums[0]), knobs.head, knobs.shrinkage)
    expected = scorer(test).flatten().numpy()
    is_finite = np.isfinite(expected)
    assert ([score is not None for score in shown] == is_finite).all()
    assert is_finite.sum() == 40 * classes_with_scores
    ratios = np.array(shown, dtype=float)[is_finite] / expected[is_finite]
    assert np.abs(ratios - 1).max() < 1e-5


def test_a_client_learns_the_weights_that_python_learns(shards):
    x, y = shards[1]
    images = x.view(-1, 1, 8, 8)
    model = build("mlp", (1, 8, 8), 10, generator=make_torch_generator(4, "init", "mlp"))
    train_clients_in_place([model], [(images, y)], Recipe(epochs=3), seed=4, ids=[1])
    code = FLOATS + "const learnt = train(floats(xs[0]), ys[0], { seed: 4, client: 1, epochs: 3 });"
    code += "return [[...learnt], [...logits(learnt, floats(xs[0]))]]"
    weights, logits = run_javascript("learn", code, **convert_shards_to_lists([(x, y)]))
    assert len(weights) == 6570
    assert measure_gap(weights, flatten_parameters(copy_model_state(model))) < 1e-5
    assert measure_gap(logits, model(images).detach()) < 1e-4


def test_fens_weighs_the_same_networks_as_python_does(shards):
    """Every network in 8 bits, and each one's weight for each class after all tiny rounds."""
    digits = load("digits")
    federation = federate("digits", alpha=0.1, clients=4, seed=4)
    models = [
        build("mlp", (1, 8, 8), 10, generator=make_torch_generator(4, "init", "mlp"))
        for _ in shards
    ]
    image_shards = [(x.view(-1, 1, 8, 8), y) for x, y in shards]
    train_clients_in_place(models, image_shards, Recipe(epochs=3), seed=4)
    networks = [flatten_parameters(copy_model_state(model)).tolist() for model in models]
    held = [rows for _, rows in federation.split(0.1)]
    _, experts = quantise_experts(ClientModels(models), 8, range(4))
    proxies = {
        k: ProxySamples(experts.compute_logits(digits.x_train[rows]), digits.y_train[rows])
        for k, rows in enumerate(held)
    }
    rule = make_trainable_aggregator("per_class", 4, 10, 0, (1, 8, 8), start="average")
    fens = fl.METHODS["fens"]()
    assert (
        len(list(fens.train_aggregator_in_place(rule, proxies, make_torch_generator)))
        == fens.rounds
    )

    code = (
        FLOATS
        + "const { small, table } = phaseTwo(networks.map(floats), held, { x: floats(x), y }, 10);"
        "return [small.map((one) => [...one]), [...table]]"
    )
    given = {
        "networks": networks,
        "held": torch.cat(held).tolist(),
        "x": digits.x_train.flatten().tolist(),
        "y": digits.y_train.tolist(),
    }
    small, table = run_javascript("learn sums ledger run", code, **given)
    assert len(small) == 4
    for k, network in enumerate(small):
        assert measure_gap(network, flatten_parameters(experts.clients.state(k))) < 1e-6
    assert measure_gap(table, rule.get_client_weights()) < 1e-6
    assert np.ptp(table) > 0.1

    # One test image, as the sum that the notebook unfolds of the same networks and weights.
    image = digits.x_test[:1]
    model = FensModel(experts, rule)
    expected = {
        "fens": explain_answer_as_client_sum(model, image),
        "logits": explain_mean_of_client_logits(ClientModels(models), image),
    }
    code = (
        FLOATS
        + "const models = { networks: networks.map(floats), small: small.map(floats), table: floats(table) };"
        "models.average = models.networks[0];"
        "const explain = (name) => explainSum(name, models, floats(image), 10);"
        "return { sums: Object.fromEntries(['fens', 'logits', 'ensemble'].map((name) => [name, explain(name)])),"
        " none: [explain('fedavg'), explainSum('fens', { networks: models.networks }, floats(image), 10)] }"
    )
    given = {
        "networks": networks,
        "small": small,
        "table": table,
        "image": image.flatten().tolist(),
    }
    answer = run_javascript("learn sums ledger run", code, **given)
    assert answer["none"] == [None, None]
    for name, explained in expected.items():
        for part in ("values", "weights", "total"):
            shown = answer["sums"][name][part]
            values = getattr(explained, part)
            np.testing.assert_allclose(shown, values, atol=1e-4, err_msg=(name, part))
        assert page.ADDED_UP[name] == {"unit": explained.unit, "about": explained.about}
    means = answer["sums"]["ensemble"]
    np.testing.assert_allclose(np.sum(means["values"], axis=1), 1, atol=1e-9)
    np.testing.assert_allclose(np.mean(means["values"], axis=0), means["total"], atol=1e-9)


def run_as_in_the_browser(alpha, clients, seeds):
    """{seed: accuracies of a run} by the page's own code."""
    digits = page.collect_page_data()["digits"]
    code = FLOATS + PIXELS
    code += "const [y, yTest] = [labels, live.answers].map((text) => Array.from(text, Number));"
    code += "return seeds.map((seed) => {"
    code += "const parts = deal(y, clients, alpha, seed).map((shard, k) => split(shard, seed, k));"
    code += "const set = { x: pixels(live.train), y, xTest: pixels(live.test), yTest, classes: 10, parts, seed };"
    code += "const server = serving(set); server.next();"
    code += "const steps = [...training({ ...set, clients: [...parts.keys()] })];"
    code += "return steps.map((step) => server.next(step).value).at(-1).shares; })"
    given = {
        "labels": digits["labels"],
        "live": digits["live"],
        "alpha": alpha,
        "clients": clients,
        "seeds": seeds,
    }
    return dict(
        zip(seeds, run_javascript("learn sums deal ledger run", code, **given), strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "seed"), [(0.1, 0), (1.0, 3)])
def test_letters_have_the_accuracies_that_the_package_has(alpha, seed):
    """AFL and Gaussian heads need no network, so they run in the page on images of another size."""
    letters = page.collect_page_data()["glyphs:16g"]
    code = (
        PIXELS
        + "const [y, yTest] = [labels, live.answers].map((text) => Array.from(text, Number));"
        "const parts = deal(y, 10, alpha, seed).map((shard, k) => split(Int32Array.from(shard).sort(), seed, k));"
        "const set = { x: pixels(live.train), y, xTest: pixels(live.test), yTest, classes: 10, parts };"
        "const { shares, legs, made } = runSums(set);"
        "return { shares, legs }"
    )
    given = {"labels": letters["labels"], "live": letters["live"], "alpha": alpha, "seed": seed}
    shown = run_javascript("learn sums deal ledger run", code, **given)
    for method in page.SUMS:
        outcome = fl.run(method, dataset="glyphs:16g", alpha=alpha, clients=10, seed=seed)
        assert abs(shown["shares"][method] - outcome.accuracy) <= 1 / 500 + 1e-9, method
        (leg,) = shown["legs"][method]
        sent = {row["client"]: row["bytes"] for row in outcome.ledger.rows()}
        assert leg["bytes"] == [sent[k] for k in range(10)], method


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "clients"), [(0.1, 10), (0.3, 5)])
def test_accuracies_over_ten_seeds_are_those_of_python(alpha, clients):
    table = fl.studies.stored_results.load("digits")
    shown = run_as_in_the_browser(alpha, clients, table.seeds)
    for name in set(page.RUNS) - {"logits"}:
        stored = table.get_accuracies_by_seed(name, alpha, clients)
        gaps = [shown[seed][name] - stored[seed] for seed in table.seeds]
        assert abs(fmean(gaps)) < 0.01, (name, gaps)
        assert max(map(abs, gaps)) < 0.03, (name, gaps)


@pytest.mark.slow
def test_both_means_of_the_ensemble_are_pythons():
    report = fl.run("ensemble", alpha=0.1, clients=10, seed=4).report
    shown = run_as_in_the_browser(0.1, 10, [4])[4]
    by_rule = report.accuracy_by_rule
    assert shown["logits"] == pytest.approx(by_rule["logits"], abs=0.01)
    assert shown["ensemble"] == pytest.approx(by_rule["probabilities"], abs=0.01)
