"""Co-Boosting as a method: the effect of each of its three ideas (EE, DHS, GHS), bytes, and the report."""

import collections
import functools

import method_runs
import numpy as np
import pytest
import torch
from collected_steps import run_and_collect_steps

from fedlab_nb.comm import formulas
from fedlab_nb.data import federate
from fedlab_nb.methods.base import EnsembleModel
from fedlab_nb.methods.coboosting import CoBoosting, WeightedEnsemble, boosting
from fedlab_nb.methods.parts import synthesis
from fedlab_nb.methods.parts.frozen_ensemble import FrozenEnsemble
from fedlab_nb.methods.parts.images import SyntheticPool
from fedlab_nb.training import ClientModels, Recipe

M, C, T, B = 3, 10, 4, 16
SHORT = {
    "epochs": T,
    "images": B,
    "batch": 8,
    "generator_steps": 2,
    "passes": 2,
    "latent": 8,
    "width": 4,
}
TRAINED_ONCE = collections.defaultdict(list)


@functools.cache
def federation(alpha=0.1, clients=M):
    return federate("digits", alpha=alpha, clients=clients, seed=0)


def context(models=("mlp",), epochs=3, dtype=torch.float32, seed=0, clients=M):
    """A run whose clients are trained once for all tests of this file."""
    remembered = TRAINED_ONCE[models, epochs, dtype, clients]
    recipe = Recipe(batch_size=16, lr=0.1, momentum=0, weight_decay=0)
    options = {"models": models, "epochs": epochs, "dtype": dtype, "seed": seed, "recipe": recipe}
    return method_runs.make_context(federation(clients=clients), **options, remembered=remembered)


def run(ctx=None, **options):
    """The final model and everything that was yielded."""
    return run_and_collect_steps(CoBoosting(**SHORT | options).run(ctx or context()))


def x_test(dtype=torch.float32):
    return federation().dataset.x_test.to(dtype)


# ------------------------------------------------------------------------------------------------ bytes
@pytest.mark.parametrize("models", [("mlp",), ("resnet8", "mlp", "lenet5")])
def test_every_client_downloads_the_initial_model_and_uploads_its_own(models):
    ctx = context(models, epochs=0)
    model, _ = run(ctx, epochs=2)
    for k, (up, down) in ctx.link.ledger.by_client().items():
        d = sum(tensor.numel() for tensor in model.ensemble.clients.state(k).values())
        assert up == down == formulas.count_model_bytes_one_way(d)
        assert up + down == formulas.count_one_shot_bytes_per_client(d)
    assert set(ctx.link.ledger.by_phase()) == {"initial model", "local models"}


# ------------------------------------------------------------------------------------------------ the three ideas
def test_without_ee_the_ensemble_is_fedens_in_every_epoch():
    for options in ({}, {"ghs": False}, {"dhs": False}):
        model, _ = run(ee=False, **options)
        np.testing.assert_array_equal(model.report.weights, np.full((T, M), np.float32(1 / M)))
        fedens = EnsembleModel(model.ensemble.clients)
        torch.testing.assert_close(model.ensemble.logits(x_test()), fedens.logits(x_test()))


def test_ee_starts_at_1_over_m_and_its_steps_and_weights_are_bounded():
    mu = 0.3
    model, steps = run(mu=mu)
    path = model.report.weights.astype(float)
    assert path.shape == (T, M)
    np.testing.assert_allclose(path[0], 1 / M, rtol=1e-6)
    assert (path >= 0).all() and (path <= 1).all() and np.ptp(path[-1]) > 0
    # `passes` = 2 steps an epoch, each of η_w 0.99^t / M.
    for t in range(1, T):
        assert np.abs(path[t] - path[t - 1]).max() <= 2 * mu / M * 0.99**t + 1e-6
    assert [s.done for s in steps if s.phase == "ensemble weights"] == [
        t for t in range(1, T) for _ in range(2)
    ]


def test_the_papers_literal_rule_takes_one_decayed_step_an_epoch():
    """updates="once" with weighted="sum" from Eqs. 2 and 12: each weight moves by η_w 0.99^t, until it meets an end."""
    model, _ = run(updates="once", weighted="sum", mu=0.01)
    path = model.report.weights.astype(float)
    for t in range(1, T):
        np.testing.assert_allclose(np.abs(path[t] - path[t - 1]), 0.01 / M * 0.99**t, rtol=1e-3)


@pytest.mark.parametrize(
    ("updates", "passes", "expected"),
    [
        ("batches", 0, [(t * B, 8, None) for t in range(1, T)]),
        ("batches", 2, [(t * B, 8, 2) for t in range(1, T)]),
        ("once", 2, [(t * B, t * B, 1) for t in range(1, T)]),
        ("new", 2, [(B, B, 1)] * T),
    ],
)
def test_ee_reads_the_samples_of_its_setting(monkeypatch, updates, passes, expected):
    """EE reads the pool before the new batch is added; its cached logits are those of the networks."""
    calls = []
    real_steps = boosting.iterate_sign_steps_of_one_pass
    pools: list[SyntheticPool] = []

    class RecordedPool(SyntheticPool):
        def __init__(self):
            super().__init__()
            pools.append(self)

    def reweight(w, logits, labels, mu, *, batch_size, maximum_steps, **options):
        calls.append((len(labels), batch_size, maximum_steps))
        if updates != "new":
            assert torch.equal(logits, pools[-1].logits) and torch.equal(labels, pools[-1].labels)
            ensemble = FrozenEnsemble(context_clients)
            torch.testing.assert_close(
                logits, ensemble.compute_logits_without_gradients(pools[-1].x), rtol=1e-4, atol=1e-5
            )
        return real_steps(
            w,
            logits,
            labels,
            mu,
            batch_size=batch_size,
            maximum_steps=maximum_steps,
            **options,
        )

    context_clients = run(ee=False)[0].ensemble.clients
    monkeypatch.setattr(synthesis, "SyntheticPool", RecordedPool)
    monkeypatch.setattr(boosting, "iterate_sign_steps_of_one_pass", reweight)
    run(updates=updates, passes=passes)
    assert calls == expected


def test_the_pool_holds_unperturbed_images(monkeypatch):
    batches = []
    pools = []

    class RecordedPool(SyntheticPool):
        def add_batch(self, x, labels, logits):
            super().add_batch(x, labels, logits)
            batches.append(x.clone())
            pools.append(self)

    monkeypatch.setattr(synthesis, "SyntheticPool", RecordedPool)
    for perturbation in boosting.PERTURBATIONS:
        batches.clear()
        run(perturbation=perturbation, epsilon=64.0)
        assert torch.equal(pools[-1].x, torch.cat(batches)) and len(pools[-1]) == T * B
        assert float(pools[-1].x.min()) >= 0 and float(pools[-1].x.max()) <= 1


def test_dhs_perturbs_every_batch_afresh(monkeypatch):
    """Teacher and student get images exactly ε away from those of the pool, in new directions for every batch."""
    calls, real = [], boosting.perturb_images_along_output_directions

    def perturb(x, teacher, u, epsilon, **options):
        perturbed = real(x, teacher, u, epsilon, **options)
        calls.append((x, perturbed, u))
        return perturbed

    monkeypatch.setattr(boosting, "perturb_images_along_output_directions", perturb)
    run(epsilon=51.0)  # 0.2 in pixels
    assert len(calls) == 2 * T  # `passes` = 2
    for x, perturbed, _ in calls:
        assert (perturbed - x).abs().max() == pytest.approx(0.2, abs=1e-6)
    assert not torch.equal(calls[0][2], calls[1][2])
    calls.clear()
    run(dhs=False)
    assert not calls


def test_dhs_changes_the_student_alone():
    """The first images and weights are the same; later ones differ because the student does."""
    with_dhs, _ = run()
    without_dhs, _ = run(dhs=False)
    assert np.array_equal(
        with_dhs.report.synthetic_images[0], without_dhs.report.synthetic_images[0]
    )
    assert not torch.equal(with_dhs.logits(x_test()), without_dhs.logits(x_test()))
    # Where the generator's loss ignores the student (β = 0), all images and weights are the same.
    with_dhs, _ = run(beta=0.0)
    without_dhs, _ = run(beta=0.0, dhs=False)
    assert np.array_equal(with_dhs.report.synthetic_images, without_dhs.report.synthetic_images)
    assert np.array_equal(with_dhs.report.weights, without_dhs.report.weights)


def test_without_dhs_cached_and_new_teacher_logits_give_the_same_student(monkeypatch):
    cached, _ = run(context(dtype=torch.float64), dhs=False)
    # With a perturbation that changes nothing the teacher's logits are computed again for every batch.
    monkeypatch.setattr(
        boosting, "perturb_images_along_output_directions", lambda x, *args, **options: x
    )
    recomputed, _ = run(context(dtype=torch.float64))
    torch.testing.assert_close(
        cached.logits(x_test(torch.float64)), recomputed.logits(x_test(torch.float64))
    )


def test_ghs_weights_the_cross_entropy_of_the_generator():
    hard, plain = run()[0].report, run(ghs=False)[0].report
    assert not np.array_equal(hard.synthetic_images[0], plain.synthetic_images[0])
    x, y = torch.rand(6, 1, 8, 8), torch.arange(6)
    clients = run(epochs=2)[0].ensemble.clients
    ensemble, student, w = FrozenEnsemble(clients), clients.module(0), torch.tensor([0.2, 0.5, 0.1])
    teacher = sum(w[k] * clients.module(k)(x) for k in range(M)) / w.sum()
    cross_entropy = torch.nn.functional.cross_entropy(teacher, y, reduction="none")
    kl = torch.nn.functional.kl_div(
        (student(x) / 3).log_softmax(1), (teacher / 3).softmax(1), reduction="batchmean"
    )  # torch's argument order: student first, teacher as target
    d = 1 - teacher.softmax(1)[torch.arange(6), y]
    for ghs, hard_loss in ((True, (d * cross_entropy).mean()), (False, cross_entropy.mean())):
        method = CoBoosting(ghs=ghs, beta=0.7)
        torch.testing.assert_close(
            method.compute_generator_loss(x, y, ensemble, student, w), hard_loss - 0.7 * 9 * kl
        )


def test_weights_can_start_from_sample_counts():
    sizes = np.array(context().sizes)
    np.testing.assert_allclose(
        run(start="samples")[0].report.weights[0], sizes / sizes.sum(), rtol=1e-6
    )


# ------------------------------------------------------------------------------------------------ references
def test_weights_from_real_images_need_those_images_sent():
    ctx = context()
    model, _ = run(ctx, ee_data="real", answer="ensemble")
    values = sum(x.numel() * 4 + y.numel() * 8 for x, y in map(ctx.private.train, range(M)))
    assert ctx.link.ledger.by_phase()["raw samples"] == (values, 0)
    assert isinstance(model, WeightedEnsemble)


# ------------------------------------------------------------------------------------------------ results


def test_the_ensembles_curve_is_its_accuracy_at_every_epoch():
    model, steps = run(mu=2.0)
    x, y = x_test(), federation().dataset.y_test
    assert model.report.ensemble_curve is None
    weights = model.report.weights[-1]
    np.testing.assert_allclose(model.report.ensemble_weights, weights / weights.sum(), rtol=1e-5)
    curve = model.complete_report_on_test_samples(x, y).ensemble_curve
    assert len(curve) == T and curve[-1] == model.ensemble.accuracy(x, y)
    assert curve[0] == EnsembleModel(model.ensemble.clients).accuracy(x, y)
    snapshots = [
        step.model.ensemble.accuracy(x, y)
        for step in steps
        if step.phase == "distillation" and step.model
    ]
    assert curve == snapshots  # T = 4: every epoch is shown


def test_answer_ensemble_predicts_with_the_weighted_ensemble():
    server, ensemble = run()[0], run(answer="ensemble")[0]
    x, y = x_test(), federation().dataset.y_test
    assert (
        ensemble.complete_report_on_test_samples(x, y).ensemble_curve
        == server.complete_report_on_test_samples(x, y).ensemble_curve
    )
    assert (
        WeightedEnsemble(ensemble.clients, [1.0] * M)
        .complete_report_on_test_samples(x, y)
        .get_fields_that_are_not_none()
        == {}
    )
    assert torch.equal(server.ensemble.logits(x_test()), ensemble.logits(x_test()))
    assert np.array_equal(server.report.weights, ensemble.report.weights)
    assert (
        ensemble.parameters == sum(ensemble.clients.parameters)
        and server.parameters == ensemble.parameters // M
    )


def test_the_perturbation_has_a_temperature_of_its_own():
    """The gradient that perturbs is of the softmax at a temperature of its own."""
    x, perturbed = (
        torch.rand(
            6, *federation().dataset.input_shape, generator=torch.Generator().manual_seed(0)
        ),
        {},
    )
    for options in ({}, {"temperature": 1.0}, {"perturbation_temperature": 1.0}):
        ctx, method = context(), CoBoosting(**SHORT | options)
        models = ClientModels([ctx.initial_model(k) for k in range(M)])
        server = synthesis.GeneratorServer(method, ctx, models)
        perturbed[tuple(options)] = method.diversify_images_by_one_step(
            x, server, torch.Generator().manual_seed(1)
        )
    assert torch.equal(perturbed[()], perturbed[("temperature",)])
    assert not torch.equal(perturbed[()], perturbed[("perturbation_temperature",)])
