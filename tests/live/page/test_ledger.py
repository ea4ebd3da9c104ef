"""What the page says that its run has sent is what the package's ledgers say, to the byte."""

import pytest
from javascript import run_javascript

import fedlab_nb as fl
from fedlab_nb.data import federate, load
from fedlab_nb.live import page


@pytest.mark.parametrize(("alpha", "clients", "seed"), [(0.1, 10, 4), (1.0, 3, 0)])
def test_legs_of_the_page_are_those_of_the_package_s_ledger(alpha, clients, seed):
    digits = load("digits")
    shards = federate("digits", alpha=alpha, clients=clients, seed=seed).shards
    code = (
        "const parts = shards.map((shard, k) => split(Int32Array.from(shard).sort(), seed, k));"
        "const samples = { x: Float32Array.from(x), y };"
        "const { counts } = solveSums(parts, samples, 10);"
        "const networks = shards.map(() => new Float32Array(6570));"
        "const held = parts.map(({ held }) => held.length);"
        "const legs = countNetworks({ networks, layers: layoutOf(6570), held, rounds: FENS.rounds,"
        " numbers: 10 * shards.length });"
        "return { ...legs, ...countSums({ size: 64, counts }) }"
    )
    given = {
        "x": digits.x_train.flatten().tolist(),
        "y": digits.y_train.tolist(),
        "shards": [shard.tolist() for shard in shards],
        "seed": seed,
    }
    shown = run_javascript("learn sums deal ledger run", code, **given)
    assert list(shown) == list(page.LEGS)
    for method, legs in shown.items():
        settings = dict(alpha=alpha, clients=clients, seed=seed, epochs=1)
        ledger = fl.run(method, **settings).ledger
        expected = {}
        for row in ledger.rows():
            key = row["phase"], row["direction"], row["client"]
            expected[key] = row["bytes"], row["messages"]
        counted = {}
        listed = {(phase, way) for phase, way, _ in page.LEGS[method]}
        for leg in legs:
            assert (leg["phase"], leg["way"]) in listed
            for k, (count, messages) in enumerate(zip(leg["bytes"], leg["messages"], strict=True)):
                if messages:
                    counted[leg["phase"], leg["way"], k] = count, messages
        assert counted == expected, method
        order = list(dict.fromkeys((row["phase"], row["direction"]) for row in ledger.rows()))
        assert [(leg["phase"], leg["way"]) for leg in legs] == order
        assert [(phase, way) for phase, way, _ in page.LEGS[method]] == order
