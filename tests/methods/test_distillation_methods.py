"""DENSE, F-DAFL, F-ADI, FedDF, FedKD and the untrained ensembles: against hand-made values, bytes, roles."""

import functools
import math

import method_runs
import pytest
import torch
import torch.nn.functional as F
from watched import watched

from fedlab_nb.comm import formulas
from fedlab_nb.data import federate
from fedlab_nb.errors import UsageError
from fedlab_nb.methods.base import weighted_mean
from fedlab_nb.methods.dense import Dense, compute_boundary_loss
from fedlab_nb.methods.ensemble import Ensemble
from fedlab_nb.methods.fadi import (
    FAdi,
    compute_mean_jensen_shannon_divergence,
    compute_total_variation,
)
from fedlab_nb.methods.fdafl import (
    FDafl,
    compute_activation_loss,
    compute_entropy_loss,
    compute_one_hot_loss,
)
from fedlab_nb.methods.fedavg_multi import FedAvgMulti
from fedlab_nb.methods.feddf import FedDF
from fedlab_nb.methods.fedkd import FedKD
from fedlab_nb.methods.parts.frozen_ensemble import EnsembleOutputs, FrozenEnsemble
from fedlab_nb.methods.parts.synthesis import DistillationServer
from fedlab_nb.models import build, model_state
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.studies.settings import Settings, make_plans
from fedlab_nb.training import ClientModels, Recipe

M, C = 3, 10
DATA_FREE = {"dense": Dense, "fdafl": FDafl, "fadi": FAdi}
SHORT = {"epochs": 2, "images": 16, "batch": 16, "passes": 2}


def logits(*rows):
    return torch.tensor(rows, dtype=torch.float64)


context = functools.partial(method_runs.context, clients=M, share=0.3, recipe=Recipe(batch_size=64))


def finish(method, ctx):
    method.validate(ctx)
    return watched(method.run(ctx))


def trained_clients(ctx):
    return exhaust_generator(ctx.local_training())


# ------------------------------------------------------------------------------------------------ the student's rate
@pytest.mark.parametrize("name", ["feddf", "dense", "fdafl", "fadi"])
def test_a_student_with_convolutions_takes_smaller_steps(name):
    """At the perceptron's rate the cnn dies, and everything that it is taught with it."""

    def rate(**setting):
        return make_plans(Settings.make(**setting), [name])[0].method.server_lr

    assert rate(model="mlp") == 0.1 and rate(model="cnn") == rate(model="mlp,cnn") == 0.02
    assert rate(model="cnn", preset="fusefl") == 0.01 and rate(model="cnn", server_lr=0.3) == 0.3


# ------------------------------------------------------------------------------------------------ DENSE
def test_boundary_loss_of_hand_made_answers():
    """Two classes; teacher and student disagree on the first sample only, whose KL is 0.8 log 4 + 0.2 log(1/4)."""
    teacher, student = logits([0.8, 0.2], [0.9, 0.1]).log(), logits([0.2, 0.8], [0.6, 0.4]).log()
    by_hand = -0.5 * (0.8 * math.log(0.8 / 0.2) + 0.2 * math.log(0.2 / 0.8))
    assert float(compute_boundary_loss(teacher, student)) == pytest.approx(by_hand, abs=1e-15)
    assert (
        float(compute_boundary_loss(teacher, teacher + 3)) == 0
    )  # where all argmaxes agree, whatever the sizes
    assert float(compute_boundary_loss(teacher[1:], student[1:])) == 0


def test_boundary_loss_at_a_temperature():
    """Logits of twice the size at τ = 2: the same distributions, and the factor τ²."""
    teacher, student = (
        logits([2.0, 0.0, 1.0], [0.0, 1.0, 0.0]),
        logits([0.0, 2.0, 0.0], [0.0, 3.0, 1.0]),
    )
    hot, plain = (
        compute_boundary_loss(2 * teacher, 2 * student, 2.0),
        compute_boundary_loss(teacher, student),
    )
    torch.testing.assert_close(hot, 4 * plain)
    assert Dense().div_temperature == 1 and float(plain) < 0


@pytest.mark.parametrize("backend", ["loop", "stacked"])
def test_generator_loss_is_the_sum_of_its_three_terms(backend):
    stream = torch.Generator().manual_seed(0)
    options = {"width": 2, "dtype": torch.float64}
    modules = [build("resnet8", (1, 8, 8), C, generator=stream, **options) for _ in range(M)]
    student = build("resnet8", (1, 8, 8), C, generator=stream, **options).eval()
    ensemble = FrozenEnsemble(ClientModels(modules), backend=backend)
    x = torch.rand(6, 1, 8, 8, generator=stream, dtype=torch.float64)
    y = torch.randint(C, (6,), generator=stream)
    with torch.no_grad():
        teacher, student_logits = sum(module(x) for module in modules) / M, student(x)
        similarity = float(-teacher.log_softmax(1)[torch.arange(6), y].mean())
        stability = float(ensemble.compute_outputs(x, with_batch_norm_loss=True).batch_norm)
        boundary = 0.0
        for t, s in zip(teacher, student_logits, strict=True):
            if t.argmax() != s.argmax():
                boundary -= float(F.kl_div(s.log_softmax(0), t.softmax(0), reduction="sum")) / 6
        assert stability > 0 and boundary < 0
        w = torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
        mixed = sum(share * module(x) for share, module in zip(w, modules, strict=True))
        by_hand = float(-mixed.log_softmax(1)[torch.arange(6), y].mean())
        plain = Dense(bn_weight=0, div_weight=0)
        assert float(plain.compute_generator_loss(x, y, ensemble, student, w)) == pytest.approx(
            by_hand, rel=1e-12
        )
        for l1, l2 in [(0.0, 0.0), (1.0, 0.0), (0.5, 2.0)]:
            method = Dense(bn_weight=l1, div_weight=l2)
            expected = similarity + l1 * stability + l2 * boundary
            assert float(method.compute_generator_loss(x, y, ensemble, student)) == pytest.approx(
                expected, rel=1e-12
            )


@pytest.mark.parametrize("name", DATA_FREE)
def test_teacher_weighted_by_samples(name):
    """Both teachers, of the images and of the student: every client's logits count n_k/N."""
    ctx, seen = context(dtype=torch.float64), []
    method = DATA_FREE[name](**{**SHORT, "epochs": 1}, weights="samples")
    shares = (torch.tensor(ctx.sizes).double() / sum(ctx.sizes)).tolist()
    loss_name = "compute_pixel_loss" if name == "fadi" else "compute_generator_loss"
    real = getattr(type(method), loss_name)

    def loss(self, *args):
        seen.append(args[-1].tolist())
        return real(self, *args)

    patched = type(f"Seen{name}", (type(method),), {loss_name: loss})
    model, _ = finish(patched(**{**SHORT, "epochs": 1}, weights="samples"), ctx)
    assert seen and all(one == pytest.approx(shares, rel=1e-12) for one in seen)
    assert model.report.disagreement.shape == (1,)
    uniform, _ = finish(DATA_FREE[name](**{**SHORT, "epochs": 1}), context(dtype=torch.float64))
    assert not torch.equal(uniform.logits(ctx.public), model.logits(ctx.public))


# ------------------------------------------------------------------------------------------------ F-DAFL
def test_entropy_loss_is_least_for_a_uniform_mean_prediction():
    sure = 50 * torch.eye(C, dtype=torch.float64)
    assert float(compute_entropy_loss(sure)) == pytest.approx(
        -math.log(C), abs=1e-12
    )  # each sample sure, all classes alike
    assert float(compute_entropy_loss(torch.zeros(4, C, dtype=torch.float64))) == pytest.approx(
        -math.log(C), abs=1e-12
    )
    assert float(compute_entropy_loss(sure[:1].repeat(7, 1))) == pytest.approx(0, abs=1e-12)
    some = torch.randn(30, C, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mean = some.softmax(1).mean(0)
    assert float(compute_entropy_loss(some)) == pytest.approx(
        float((mean * mean.log()).sum()), rel=1e-12
    )
    assert -math.log(C) < float(compute_entropy_loss(some)) < 0


def test_one_hot_and_activation_losses():
    teacher = logits([0.7, 0.2, 0.1], [0.1, 0.3, 0.6]).log()
    assert float(compute_one_hot_loss(teacher)) == pytest.approx(
        -(math.log(0.7) + math.log(0.6)) / 2, abs=1e-15
    )
    features = [
        logits([1.0, -3.0], [0.0, 2.0]),
        logits([1.0, -1.0, 1.0, 5.0], [0.0, 0.0, 0.0, 0.0]),
    ]
    # Clients' means of |h|/d: ((1 + 3)/2 + (0 + 2)/2)/2 = 1.5 and (8/4 + 0)/2 = 1; signs do not cancel.
    assert float(compute_activation_loss(features)) == pytest.approx(-1.25)


# ------------------------------------------------------------------------------------------------ F-ADI
def test_total_variation_of_a_hand_made_image():
    x = torch.zeros(1, 1, 3, 3, dtype=torch.float64)
    x[0, 0, 1, 1] = 2.0  # two neighbours in each of the four directions: norms sqrt(2 * 4)
    assert float(compute_total_variation(x)) == pytest.approx(4 * math.sqrt(8))
    assert float(compute_total_variation(torch.ones(2, 3, 4, 4))) == 0


def test_jensen_shannon():
    p = torch.randn(5, C, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    q = torch.randn(5, C, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert float(compute_mean_jensen_shannon_divergence(p, p + 2)) == pytest.approx(0, abs=1e-15)
    assert float(
        compute_mean_jensen_shannon_divergence(logits([90.0, 0.0]), logits([0.0, 90.0]))
    ) == pytest.approx(math.log(2))
    a, b = p.softmax(1), q.softmax(1)
    m = (a + b) / 2
    by_hand = ((a * (a / m).log()).sum(1) + (b * (b / m).log()).sum(1)).mean() / 2
    assert float(compute_mean_jensen_shannon_divergence(p, q)) == pytest.approx(
        float(by_hand), rel=1e-12
    )


# ------------------------------------------------------------------------------------------------ whole losses
class Linear:
    """An ensemble (of one client) and a student alike: logits are the pixels times a factor, features the logits."""

    def __init__(self, factor, batch_norm=0.0):
        self.factor, self.batch_norm = factor, torch.tensor(batch_norm, dtype=torch.float64)

    def __call__(self, x):
        return self.factor * x.flatten(1)

    def compute_outputs(self, samples, with_batch_norm_loss=False):
        return EnsembleOutputs(
            self(samples)[None],
            [self(samples)],
            self.batch_norm if with_batch_norm_loss else samples.new_zeros(()),
        )


def test_loss_of_fdafl_by_hand():
    """Two images of two pixels, probabilities (3/4, 1/4) and (1/4, 3/4): λ 2, 3 and 5 on terms worked by hand."""
    x = logits([math.log(3), 0.0], [0.0, math.log(3)]).view(2, 1, 1, 2)
    sure = -math.log(0.75)  # CE to the likelier class
    entropy = -math.log(2)  # the mean prediction is (1/2, 1/2)
    activation = -math.log(3) / 2  # each image: (ln 3 + 0) / 2
    for weights in [(2.0, 3.0, 5.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]:
        method = FDafl(**dict(zip(("one_hot", "entropy", "activation"), weights, strict=True)))
        by_hand = weights[0] * sure + weights[1] * entropy + weights[2] * activation
        assert float(method.compute_generator_loss(x, Linear(1.0))) == pytest.approx(
            by_hand, abs=1e-14
        )


def test_loss_of_fadi_by_hand():
    """One image of two pixels, teacher (3/4, 1/4), student (1/4, 3/4) after temperature 3; every term by hand."""
    u = logits([0.6, -0.2]).view(1, 1, 1, 2)
    x = logits([3 * math.log(3), 0.0]).view(
        1, 1, 1, 2
    )  # what the networks see; u is what is smoothed
    y = torch.tensor([1])
    wrong = math.log(1 + 27)  # CE to class 1 of logits (ln 27, 0)
    tv = 0.8  # one horizontal difference, 0.6 + 0.2; there is no other neighbour
    norm = math.sqrt(0.36 + 0.04)
    # P = (3/4, 1/4), Q = (1/4, 3/4), M = (1/2, 1/2): both KL are 3/4 log 3/2 + 1/4 log 1/2.
    apart = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    terms = {"tv": tv, "l2": norm, "bn_weight": 0.37, "adaptive": 1 - apart}
    ensemble, student = Linear(1.0, batch_norm=0.37), lambda x: Linear(1.0)(x).flip(1)
    together = {"tv": 2.0, "l2": 3.0, "bn_weight": 5.0, "adaptive": 7.0}
    for chosen in [{}, *({name: weight} for name, weight in together.items()), together]:
        method = FAdi(**{**dict.fromkeys(terms, 0.0), **chosen})
        by_hand = wrong + sum(weight * terms[name] for name, weight in chosen.items())
        assert float(method.compute_pixel_loss(u, x, y, ensemble, student)) == pytest.approx(
            by_hand, abs=1e-14
        )


def test_fadis_networks_see_the_pixels_in_0_to_1_rolled(monkeypatch):
    """u in [-1, 1] is x = (1 + u)/2, moved by at most a sixteenth of the side, here one pixel, anew each time."""
    seen, real = [], FAdi.compute_pixel_loss

    def loss(self, u, x, *rest):
        shifts = [
            (i, j)
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if torch.equal(x, ((1 + u) / 2).roll((i, j), (2, 3)))
        ]
        seen.append(shifts)
        assert bool((x >= 0).all()) and bool((x <= 1).all())
        return real(self, u, x, *rest)

    monkeypatch.setattr(FAdi, "compute_pixel_loss", loss)
    finish(FAdi(**{**SHORT, "epochs": 1}), context())
    assert all(len(shifts) == 1 for shifts in seen) and len(set(map(tuple, seen))) > 4


# ------------------------------------------------------------------------------------------------ runs
@pytest.mark.parametrize("model", ["mlp", "resnet8"])
@pytest.mark.parametrize("name", DATA_FREE)
def test_data_free_runs_cost_one_upload_and_report_their_images(name, model):
    ctx = context(model=model, width=4)
    model, steps = finish(DATA_FREE[name](**SHORT), ctx)
    d = sum(t.numel() for t in model_state(model.module).values())
    for up, down in ctx.link.ledger.by_client().values():
        assert up + down == formulas.count_one_shot_bytes_per_client(d) and up == 4 * d
    assert ctx.link.ledger.by_phase().keys() == {"initial model", "local models"}
    report = model.report
    assert report.synthetic_images.shape == (2, 16, 1, 8, 8) and report.synthetic_labels.shape == (
        2,
        16,
    )
    assert (report.synthetic_labels[:, 1:] >= report.synthetic_labels[:, :-1]).all()
    assert report.disagreement.shape == report.distillation_loss.shape == (2,)
    assert {step.phase for step in steps} == {"local training", "synthesis", "distillation"}
    shown = [
        step.model for step in steps if step.phase == "distillation" and step.model is not None
    ]
    assert [len(now.report.synthetic_epochs) for now in shown] == [1, 2]
    assert not model.module.training


@pytest.mark.parametrize("kind", [Dense, FAdi])
def test_making_images_leaves_the_students_batch_norm_alone(kind, monkeypatch):
    """It moves in distillation only: before the first step everything is as it was drawn."""
    seen, name, real = [], kind.info.name, DistillationServer.distil_student_network

    def distil(self, *args):
        seen.append(model_state(self.student))
        return (yield from real(self, *args))

    monkeypatch.setattr(DistillationServer, "distil_student_network", distil)
    ctx = context(model="resnet8", width=4)
    finish(kind(**SHORT), ctx)
    initial = model_state(ctx.build(ctx.architectures[0], ctx.generator(name, "student")))
    assert all(torch.equal(tensor, seen[0][key]) for key, tensor in initial.items())
    assert not all(torch.equal(tensor, seen[1][key]) for key, tensor in initial.items())


def test_dense_with_the_cross_entropy_alone_distils_and_augments():
    students = []
    for augment in ("none", "crop", "crop+flip"):
        ctx = context()
        method = Dense(
            **SHORT, generator_steps=2, bn_weight=0, div_weight=0, augment=augment, reset=True
        )
        students.append(model_state(finish(method, ctx)[0].module))
        initial = model_state(ctx.build(ctx.architectures[0], ctx.generator("dense", "student")))
        assert not any(torch.equal(tensor, initial[name]) for name, tensor in students[-1].items())
    none, crop, flip = (
        torch.cat([tensor.flatten() for tensor in state.values()]) for state in students
    )
    assert not torch.equal(none, crop) and not torch.equal(crop, flip)


# ------------------------------------------------------------------------------------------------ real public samples
def test_feddf_of_one_client_that_starts_from_it_stays_where_it_is():
    """Student = teacher: KL and its gradient are 0. Weight decay, 1e-4 times the rate, is all that moves."""
    federation = federate("digits", alpha=0.5, clients=1, seed=0)
    ctx = context(federation=federation, dtype=torch.float64)
    model, _ = finish(FedDF(epochs=1, server_lr=1e-3, start="average"), ctx)
    teacher = trained_clients(context(federation=federation, dtype=torch.float64)).module(0)
    for one, other in zip(model.module.parameters(), teacher.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=0)


def test_feddf_starts_from_the_weighted_average_if_asked():
    ctx = context()
    model, _ = finish(FedDF(epochs=1, batch=4096, server_lr=1e-5, start="average"), ctx)
    clients = trained_clients(context())
    average = weighted_mean([clients.state(k) for k in range(M)], ctx.sizes)
    for name, tensor in model_state(model.module).items():
        torch.testing.assert_close(tensor, average[name], rtol=0, atol=1e-3)


def test_feddf_in_rounds_with_one_client_a_round_is_fedavg():
    """Teacher and student are the same network, so that there is nothing to distil: the same clients, batches, bytes
    and weights as FedAvg's, to weight decay (1e-4 times the rate)."""
    setting = {"clients": 4, "dtype": torch.float64}
    both = {"rounds": 3, "per_round": 1, "local_epochs": 2}
    ctx, plain = context(**setting), context(**setting)
    model, _ = finish(FedDF(**both, epochs=1, server_lr=1e-5), ctx)
    average, _ = finish(FedAvgMulti(**both), plain)
    for name, tensor in model_state(model.module).items():
        torch.testing.assert_close(tensor, model_state(average.module)[name], rtol=1e-7, atol=1e-9)
    assert ctx.link.ledger.by_client() == plain.link.ledger.by_client()


def test_feddf_in_rounds_distils_all_into_the_average_of_each_architecture():
    """Two architectures and one step of SGD: what goes down in round 2 is θ̄ - η (∇ τ² KL + 1e-4 θ̄), by autograd from
    what went up in round 1."""
    ctx = context(clients=4, dtype=torch.float64, models=("mlp:4", "mlp:8"))
    rate, temperature, messages = 0.02, 2.0, {"up": {}, "down": {}}
    for way, log in messages.items():
        send = getattr(ctx.link, way)

        def record(k, payload, phase, send=send, log=log):
            log.setdefault(k, []).append({n: tensor.clone() for n, tensor in payload.items()})
            return send(k, payload, phase=phase)

        setattr(ctx.link, way, record)
    method = FedDF(
        rounds=2, local_epochs=1, epochs=1, batch=4096, server_lr=rate, temperature=temperature
    )
    finish(method, ctx)

    def network(k, state):
        model = ctx.initial_model(k)
        model.load_state_dict(state)
        return model

    with torch.no_grad():
        uploaded = [network(k, messages["up"][k][0])(ctx.public) for k in range(4)]
        teacher = (torch.stack(uploaded).mean(0) / temperature).softmax(1)
    for members in ([0, 2], [1, 3]):
        sizes = [ctx.sizes[k] for k in members]
        average = weighted_mean([messages["up"][k][0] for k in members], sizes)
        student = network(members[0], average)
        answers = (student(ctx.public) / temperature).log_softmax(1)
        (temperature**2 * F.kl_div(answers, teacher, reduction="batchmean")).backward()
        norm = sum(p.grad.square().sum() for p in student.parameters()).sqrt()
        assert norm < 10  # nothing is clipped
        for name, parameter in student.named_parameters():
            expected = parameter - rate * (parameter.grad + 1e-4 * parameter)
            for k in members:
                torch.testing.assert_close(messages["down"][k][1][name], expected.detach())


def test_feddf_in_rounds_has_no_network_of_its_own():
    with pytest.raises(UsageError, match="server_model=auto or rounds=1"):
        FedDF(rounds=2, server_model="mlp:64").validate(context())


def test_fedkds_first_step_goes_down_the_gradient_towards_class_count_weighted_logits():
    """One Adam step moves every weight by the rate against the sign of the gradient of mean |f(x) - f_S(x)|."""
    ctx = context(dtype=torch.float64)
    rate = 1e-3
    model, _ = finish(FedKD(epochs=1, batch=4096, server_lr=rate, loss="l1"), ctx)
    clients = trained_clients(context(dtype=torch.float64))
    counts = torch.stack(
        [torch.bincount(ctx.private.train(k)[1], minlength=C) for k in range(M)]
    ).double()
    shares = counts / counts.sum(0)
    teacher = sum(shares[k] * clients.module(k)(ctx.public) for k in range(M)).detach()
    student = ctx.build(ctx.architectures[0], ctx.generator("fedkd", "student"))
    F.l1_loss(student(ctx.public), teacher).backward()
    for before, after in zip(student.parameters(), model.module.parameters(), strict=True):
        sure = before.grad.abs() > 1e-6
        change = (after - before).detach()[sure]
        torch.testing.assert_close(change, -rate * before.grad[sure].sign(), rtol=0.02, atol=0)


def test_fedkds_bytes_with_and_without_rounds_after():
    ctx = context()
    model, _ = finish(FedKD(epochs=1), ctx)
    d = model.parameters
    for up, down in ctx.link.ledger.by_client().values():
        assert up + down == formulas.count_one_shot_bytes_per_client(d) + 4 * C
    ctx = context()
    tuned, steps = finish(FedKD(epochs=1, rounds_after=2, local_epochs=1), ctx)
    for up, down in ctx.link.ledger.by_client().values():
        assert up + down == formulas.count_one_shot_bytes_per_client(
            d
        ) + 4 * C + formulas.count_iterative_bytes_per_client(d, 2)
    assert steps[-1].phase == "rounds" and not torch.equal(
        tuned.logits(ctx.public), model.logits(ctx.public)
    )


def test_fedkd_from_an_averaged_model():
    """`rounds_before`: the clients go on from FedAvg's model, which costs its rounds; the student starts there, too."""
    ctx = context(dtype=torch.float64)
    finish(FedKD(epochs=1, rounds_before=2, local_epochs=1), ctx)
    d = sum(t.numel() for t in model_state(ctx.initial_model()).values())
    for up, down in ctx.link.ledger.by_client().values():
        assert (
            up + down
            == 2
            * (
                formulas.count_one_shot_bytes_per_client(d)
                + formulas.count_iterative_bytes_per_client(d, 2)
            )
            + 4 * C
        )
    average, _ = finish(FedAvgMulti(rounds=2, local_epochs=1), context(dtype=torch.float64))
    still = context(dtype=torch.float64)
    still.recipe = Recipe(
        epochs=0, batch_size=64
    )  # no further training: rounds and local models are θ_2 alone
    for first in (still, ctx):
        student, _ = finish(
            FedKD(epochs=1, batch=4096, server_lr=1e-6, rounds_before=2, local_epochs=1), first
        )
        for name, tensor in model_state(student.module).items():
            torch.testing.assert_close(tensor, model_state(average.module)[name], rtol=0, atol=2e-6)


# ------------------------------------------------------------------------------------------------ untrained ensembles
def test_rules_of_the_ensemble():
    models = {}
    for rule in ("logits", "probabilities", "weighted", "class_counts", "votes"):
        ctx = context(dtype=torch.float64)
        models[rule], _ = finish(Ensemble(rule=rule), ctx)
        d = models[rule].parameters // M
        for up, down in ctx.link.ledger.by_client().values():
            assert up + down == 2 * 8 * d + (4 * C if rule == "class_counts" else 0)
    x = ctx.public
    client_logits = torch.stack([models["votes"].clients.module(k)(x) for k in range(M)]).detach()
    sizes = torch.tensor(ctx.sizes).double()
    counts = torch.stack(
        [torch.bincount(ctx.private.train(k)[1], minlength=C) for k in range(M)]
    ).double()
    close = {"rtol": 0, "atol": 1e-7}
    torch.testing.assert_close(models["logits"].logits(x), client_logits.mean(0), **close)
    torch.testing.assert_close(
        models["weighted"].logits(x),
        torch.einsum("m,mnc->nc", sizes / sizes.sum(), client_logits),
        **close,
    )
    shares = counts / counts.sum(0)
    torch.testing.assert_close(
        models["class_counts"].logits(x), torch.einsum("mc,mnc->nc", shares, client_logits), **close
    )
    for i, answer in enumerate(models["votes"].predict(x).tolist()):
        names = client_logits[:, i].argmax(1).tolist()
        most = max(names.count(c) for c in range(C))
        assert names.count(answer) == most
        mean = client_logits[:, i].softmax(1).mean(0)
        assert answer == max(
            (c for c in range(C) if names.count(c) == most), key=lambda c: float(mean[c])
        )
