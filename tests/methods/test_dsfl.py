"""DS-FL: sharpening by hand, bytes that do not depend on the model, and local epochs by default."""

import math

import byte_formulas
import pytest
import torch
from collected_steps import run_and_collect_steps
from method_runs import make_context

from fedlab_nb.methods.dsfl import DSFL, aggregate_client_probabilities


def finish(method, ctx):
    return run_and_collect_steps(method.run(ctx))


def test_entropy_reduction_by_hand():
    """Two clients, two classes: the mean (0.6, 0.4) at T = 0.1 has odds e^{(0.6 - 0.4) / 0.1} = e²."""
    p = torch.tensor([[[0.9, 0.1]], [[0.3, 0.7]]], dtype=torch.float64)
    assert aggregate_client_probabilities(p, "mean", 0.1).tolist() == [
        [pytest.approx(0.6), pytest.approx(0.4)]
    ]
    q = aggregate_client_probabilities(p, "era", 0.1)
    assert q[0, 0].item() == pytest.approx(math.exp(2) / (1 + math.exp(2)))


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("share", [True, False])
def test_bytes_count_logits_and_images_but_no_model(rounds, share):
    ctx = make_context()
    finish(DSFL(rounds=rounds, local_epochs=1, distil_steps=7, share_images=share), ctx)
    n = len(ctx.public)
    expected = byte_formulas.count_dsfl_bytes(n, 10, rounds, image=64 if share else 0)
    for up, down in ctx.link.ledger.by_client().values():
        assert (
            up == byte_formulas.count_logit_bytes_one_way(n, 10) * rounds and up + down == expected
        )
    assert set(ctx.link.ledger.by_phase()) == ({"public images", "rounds"} if share else {"rounds"})


def test_local_epochs_of_0_are_the_recipes_epochs():
    by_recipe, _ = finish(DSFL(rounds=1, distil_steps=7), make_context(epochs=3))
    by_knob, _ = finish(DSFL(rounds=1, distil_steps=7, local_epochs=3), make_context(epochs=9))
    assert all(
        torch.equal(a, b)
        for a, b in zip(by_recipe.module.parameters(), by_knob.module.parameters(), strict=True)
    )
