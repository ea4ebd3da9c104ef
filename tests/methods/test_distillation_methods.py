"""DENSE, F-DAFL, F-ADI, FedDF, FedKD and the ensembles without training: losses against values by hand, bytes, runs."""

import functools
import itertools
import math

import method_runs
import pytest
import torch
import torch.nn.functional as F
from collected_steps import run_and_collect_steps

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
from fedlab_nb.methods.parts.frozen_ensemble import FrozenEnsemble, LogitsFeaturesAndBatchNormLoss
from fedlab_nb.methods.parts.synthesis import DistillationServer
from fedlab_nb.models import build, copy_model_state
from fedlab_nb.studies.experiment import exhaust_generator
from fedlab_nb.studies.settings import Settings, make_plans
from fedlab_nb.training import ClientModels, Recipe

CLIENTS, CLASSES = 3, 10
DATA_FREE = {"dense": Dense, "fdafl": FDafl, "fadi": FAdi}
SHORT = {"epochs": 2, "images": 16, "batch": 16, "passes": 2}


def make_logits(*rows):
    return torch.tensor(rows, dtype=torch.float64)


context = functools.partial(
    method_runs.make_context, clients=CLIENTS, share=0.3, recipe=Recipe(batch_size=64)
)


def finish(method, ctx):
    method.validate(ctx)
    return run_and_collect_steps(method.run(ctx))


def train_clients(ctx):
    return exhaust_generator(ctx.local_training())


# ------------------------------------------------------------------------------------------------ the student's rate
@pytest.mark.parametrize("name", ["feddf", "dense", "fdafl", "fadi"])
def test_a_student_with_convolutions_takes_smaller_steps(name):
    """At the perceptron's learning rate a CNN's training collapses, and with it the student that it should become."""

    def get_server_lr(**setting):
        return make_plans(Settings.make(**setting), [name])[0].method.server_lr

    assert get_server_lr(model="mlp") == 0.1
    assert get_server_lr(model="cnn") == get_server_lr(model="mlp,cnn") == 0.02
    assert get_server_lr(model="cnn", preset="fusefl") == 0.01
    assert get_server_lr(model="cnn", server_lr=0.3) == 0.3


# ------------------------------------------------------------------------------------------------ DENSE
def test_boundary_loss_by_hand():
    """Two classes; teacher and student disagree on the first sample only, whose KL is 0.8 log 4 + 0.2 log(1/4)."""
    teacher = make_logits([0.8, 0.2], [0.9, 0.1]).log()
    student = make_logits([0.2, 0.8], [0.6, 0.4]).log()
    by_hand = -0.5 * (0.8 * math.log(0.8 / 0.2) + 0.2 * math.log(0.2 / 0.8))
    assert float(compute_boundary_loss(teacher, student)) == pytest.approx(by_hand, abs=1e-15)
    # Where all argmaxes agree the loss is 0, whatever the logits.
    assert float(compute_boundary_loss(teacher, teacher + 3)) == 0
    assert float(compute_boundary_loss(teacher[1:], student[1:])) == 0


def test_boundary_loss_at_a_temperature():
    """Twice the logits at τ = 2 give the same distributions as at τ = 1; the loss has the factor τ²."""
    teacher = make_logits([2.0, 0.0, 1.0], [0.0, 1.0, 0.0])
    student = make_logits([0.0, 2.0, 0.0], [0.0, 3.0, 1.0])
    at_temperature_2 = compute_boundary_loss(2 * teacher, 2 * student, 2.0)
    at_temperature_1 = compute_boundary_loss(teacher, student)
    torch.testing.assert_close(at_temperature_2, 4 * at_temperature_1)
    assert float(at_temperature_1) < 0
    assert Dense().div_temperature == 1


@pytest.mark.parametrize("backend", ["loop", "stacked"])
def test_generator_loss_is_the_sum_of_its_three_terms(backend):
    stream = torch.Generator().manual_seed(0)
    options = {"width": 2, "dtype": torch.float64}
    modules = [
        build("resnet8", (1, 8, 8), CLASSES, generator=stream, **options) for _ in range(CLIENTS)
    ]
    student = build("resnet8", (1, 8, 8), CLASSES, generator=stream, **options).eval()
    ensemble = FrozenEnsemble(ClientModels(modules), backend=backend)
    x = torch.rand(6, 1, 8, 8, generator=stream, dtype=torch.float64)
    y = torch.randint(CLASSES, (6,), generator=stream)
    with torch.no_grad():
        teacher = sum(module(x) for module in modules) / CLIENTS
        student_logits = student(x)
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
def test_weights_by_samples_apply_to_both_teachers(name):
    """The generator's teacher and the student's: every client's logits count n_k/N."""
    ctx = context(dtype=torch.float64)
    recorded_weights = []
    method = DATA_FREE[name](**{**SHORT, "epochs": 1}, weights="samples")
    shares = (torch.tensor(ctx.sizes).double() / sum(ctx.sizes)).tolist()
    loss_name = "compute_pixel_loss" if name == "fadi" else "compute_generator_loss"
    real_loss = getattr(type(method), loss_name)

    def record_weights(self, *args):
        recorded_weights.append(args[-1].tolist())
        return real_loss(self, *args)

    patched = type(f"Recorded{name}", (type(method),), {loss_name: record_weights})
    model, _ = finish(patched(**{**SHORT, "epochs": 1}, weights="samples"), ctx)
    assert recorded_weights and all(
        weights == pytest.approx(shares, rel=1e-12) for weights in recorded_weights
    )
    assert model.report.disagreement.shape == (1,)
    uniform, _ = finish(DATA_FREE[name](**{**SHORT, "epochs": 1}), context(dtype=torch.float64))
    assert not torch.equal(uniform.logits(ctx.public), model.logits(ctx.public))


# ------------------------------------------------------------------------------------------------ F-DAFL
def test_entropy_loss_is_smallest_for_a_uniform_mean_prediction():
    certain = 50 * torch.eye(CLASSES, dtype=torch.float64)
    # Each prediction is certain, and every class is predicted equally often.
    assert float(compute_entropy_loss(certain)) == pytest.approx(-math.log(CLASSES), abs=1e-12)
    assert float(
        compute_entropy_loss(torch.zeros(4, CLASSES, dtype=torch.float64))
    ) == pytest.approx(-math.log(CLASSES), abs=1e-12)
    assert float(compute_entropy_loss(certain[:1].repeat(7, 1))) == pytest.approx(0, abs=1e-12)
    random_logits = torch.randn(
        30, CLASSES, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    mean_prediction = random_logits.softmax(1).mean(0)
    assert float(compute_entropy_loss(random_logits)) == pytest.approx(
        float((mean_prediction * mean_prediction.log()).sum()), rel=1e-12
    )
    assert -math.log(CLASSES) < float(compute_entropy_loss(random_logits)) < 0


def test_one_hot_and_activation_losses_by_hand():
    teacher = make_logits([0.7, 0.2, 0.1], [0.1, 0.3, 0.6]).log()
    assert float(compute_one_hot_loss(teacher)) == pytest.approx(
        -(math.log(0.7) + math.log(0.6)) / 2, abs=1e-15
    )
    features = [
        make_logits([1.0, -3.0], [0.0, 2.0]),
        make_logits([1.0, -1.0, 1.0, 5.0], [0.0, 0.0, 0.0, 0.0]),
    ]
    # Each client's mean of |h|/d: ((1 + 3)/2 + (0 + 2)/2)/2 = 1.5 and (8/4 + 0)/2 = 1; signs do not cancel.
    assert float(compute_activation_loss(features)) == pytest.approx(-1.25)


# ------------------------------------------------------------------------------------------------ F-ADI
def test_total_variation_by_hand():
    x = torch.zeros(1, 1, 3, 3, dtype=torch.float64)
    x[0, 0, 1, 1] = 2.0  # in each of the four directions two differences of 2: norm sqrt(2 * 4)
    assert float(compute_total_variation(x)) == pytest.approx(4 * math.sqrt(8))
    assert float(compute_total_variation(torch.ones(2, 3, 4, 4))) == 0


def test_jensen_shannon_divergence_by_hand():
    p = torch.randn(5, CLASSES, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    q = torch.randn(5, CLASSES, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert float(compute_mean_jensen_shannon_divergence(p, p + 2)) == pytest.approx(0, abs=1e-15)
    assert float(
        compute_mean_jensen_shannon_divergence(make_logits([90.0, 0.0]), make_logits([0.0, 90.0]))
    ) == pytest.approx(math.log(2))
    a, b = p.softmax(1), q.softmax(1)
    m = (a + b) / 2
    by_hand = ((a * (a / m).log()).sum(1) + (b * (b / m).log()).sum(1)).mean() / 2
    assert float(compute_mean_jensen_shannon_divergence(p, q)) == pytest.approx(
        float(by_hand), rel=1e-12
    )


# ------------------------------------------------------------------------------------------------ complete losses
class LinearNetwork:
    """Serves as an ensemble of one client and as a student: logits and features are the pixels times a factor."""

    def __init__(self, factor, batch_norm=0.0):
        self.factor, self.batch_norm = factor, torch.tensor(batch_norm, dtype=torch.float64)

    def __call__(self, x):
        return self.factor * x.flatten(1)

    def compute_outputs(self, samples, with_batch_norm_loss=False):
        return LogitsFeaturesAndBatchNormLoss(
            self(samples)[None],
            [self(samples)],
            self.batch_norm if with_batch_norm_loss else samples.new_zeros(()),
        )


def test_loss_of_fdafl_by_hand():
    """Two images of two pixels, probabilities (3/4, 1/4) and (1/4, 3/4); each term alone, and all with λ 2, 3, 5."""
    x = make_logits([math.log(3), 0.0], [0.0, math.log(3)]).view(2, 1, 1, 2)
    one_hot = -math.log(0.75)  # cross-entropy to the likelier class
    entropy = -math.log(2)  # the mean prediction is (1/2, 1/2)
    activation = -math.log(3) / 2  # each image: (ln 3 + 0) / 2
    for weights in [(2.0, 3.0, 5.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]:
        method = FDafl(one_hot=weights[0], entropy=weights[1], activation=weights[2])
        by_hand = weights[0] * one_hot + weights[1] * entropy + weights[2] * activation
        assert float(method.compute_generator_loss(x, LinearNetwork(1.0))) == pytest.approx(
            by_hand, abs=1e-14
        )


def test_loss_of_fadi_by_hand():
    """One image of two pixels; at temperature 3 the teacher says (3/4, 1/4) and the student (1/4, 3/4)."""
    u = make_logits([0.6, -0.2]).view(1, 1, 1, 2)
    # The networks see x; total variation and norm are those of u.
    x = make_logits([3 * math.log(3), 0.0]).view(1, 1, 1, 2)
    y = torch.tensor([1])
    cross_entropy = math.log(1 + 27)  # to class 1 of logits (ln 27, 0)
    tv = 0.8  # one horizontal difference, 0.6 + 0.2; there is no other neighbour
    norm = math.sqrt(0.36 + 0.04)
    # P = (3/4, 1/4), Q = (1/4, 3/4), M = (1/2, 1/2): both KL are 3/4 log 3/2 + 1/4 log 1/2.
    divergence = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    terms = {"tv": tv, "l2": norm, "bn_weight": 0.37, "adaptive": 1 - divergence}
    ensemble, student = LinearNetwork(1.0, batch_norm=0.37), lambda x: LinearNetwork(1.0)(x).flip(1)
    all_weights = {"tv": 2.0, "l2": 3.0, "bn_weight": 5.0, "adaptive": 7.0}
    for weights in [{}, *({name: weight} for name, weight in all_weights.items()), all_weights]:
        method = FAdi(**{**dict.fromkeys(terms, 0.0), **weights})
        by_hand = cross_entropy + sum(weight * terms[name] for name, weight in weights.items())
        assert float(method.compute_pixel_loss(u, x, y, ensemble, student)) == pytest.approx(
            by_hand, abs=1e-14
        )


def test_fadis_networks_see_pixels_in_0_to_1_that_are_randomly_shifted(monkeypatch):
    """The networks see x = (1 + u)/2, shifted afresh each time by at most a sixteenth of the side, here one pixel."""
    shifts_by_call = []
    real_loss = FAdi.compute_pixel_loss

    def record_shift(self, u, x, *args):
        pixels = (1 + u) / 2
        shifts = []
        for shift in itertools.product((-1, 0, 1), repeat=2):
            if torch.equal(x, pixels.roll(shift, (2, 3))):
                shifts.append(shift)
        shifts_by_call.append(shifts)
        assert bool((x >= 0).all())
        assert bool((x <= 1).all())
        return real_loss(self, u, x, *args)

    monkeypatch.setattr(FAdi, "compute_pixel_loss", record_shift)
    finish(FAdi(**{**SHORT, "epochs": 1}), context())
    assert all(len(shifts) == 1 for shifts in shifts_by_call)
    assert len({shifts[0] for shifts in shifts_by_call}) > 4


# ------------------------------------------------------------------------------------------------ runs
@pytest.mark.slow
@pytest.mark.parametrize("model", ["mlp", "resnet8"])
@pytest.mark.parametrize("name", DATA_FREE)
def test_data_free_runs_cost_one_upload_and_report_their_images(name, model):
    ctx = context(model=model, width=4)
    model, steps = finish(DATA_FREE[name](**SHORT), ctx)
    d = sum(t.numel() for t in copy_model_state(model.module).values())
    for up, down in ctx.link.ledger.by_client().values():
        assert up + down == formulas.count_one_shot_bytes_per_client(d) and up == 4 * d
    assert ctx.link.ledger.by_phase().keys() == {"initial model", "local models"}
    report = model.report
    assert report.synthetic_images.shape == (2, 16, 1, 8, 8)
    assert report.synthetic_labels.shape == (2, 16)
    assert (report.synthetic_labels[:, 1:] >= report.synthetic_labels[:, :-1]).all()
    assert report.disagreement.shape == report.distillation_loss.shape == (2,)
    assert {step.phase for step in steps} == {"local training", "synthesis", "distillation"}
    students = [
        step.model for step in steps if step.phase == "distillation" and step.model is not None
    ]
    assert [len(student.report.synthetic_epochs) for student in students] == [1, 2]
    assert not model.module.training


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Dense, FAdi])
def test_synthesis_leaves_the_students_batch_norm_alone(kind, monkeypatch):
    """Distillation alone changes it: before the first step the student is as it was initialised."""
    states = []
    real_distil = DistillationServer.distil_student_for_one_epoch

    def distil(self, *args):
        states.append(copy_model_state(self.student))
        return (yield from real_distil(self, *args))

    monkeypatch.setattr(DistillationServer, "distil_student_for_one_epoch", distil)
    ctx = context(model="resnet8", width=4)
    finish(kind(**SHORT), ctx)
    initial = copy_model_state(
        ctx.build(ctx.architectures[0], ctx.generator(kind.info.name, "student"))
    )
    assert all(torch.equal(tensor, states[0][name]) for name, tensor in initial.items())
    assert not all(torch.equal(tensor, states[1][name]) for name, tensor in initial.items())


def test_dense_with_the_cross_entropy_alone_trains_its_student_and_augments():
    students = []
    for augment in ("none", "crop", "crop+flip"):
        ctx = context()
        method = Dense(
            **SHORT, generator_steps=2, bn_weight=0, div_weight=0, augment=augment, reset=True
        )
        students.append(copy_model_state(finish(method, ctx)[0].module))
        initial = copy_model_state(
            ctx.build(ctx.architectures[0], ctx.generator("dense", "student"))
        )
        assert not any(torch.equal(tensor, initial[name]) for name, tensor in students[-1].items())
    none, crop, crop_and_flip = (
        torch.cat([tensor.flatten() for tensor in state.values()]) for state in students
    )
    assert not torch.equal(none, crop)
    assert not torch.equal(crop, crop_and_flip)


# ------------------------------------------------------------------------------------------------ real public samples
def test_feddf_of_one_client_that_starts_from_its_model_does_not_move():
    """Student and teacher are the same, so KL and its gradient are 0; only weight decay (1e-4 times the rate) acts."""
    federation = federate("digits", alpha=0.5, clients=1, seed=0)
    ctx = context(federation=federation, dtype=torch.float64)
    model, _ = finish(FedDF(epochs=1, server_lr=1e-3, start="average"), ctx)
    teacher = train_clients(context(federation=federation, dtype=torch.float64)).module(0)
    for parameter, teacher_parameter in zip(
        model.module.parameters(), teacher.parameters(), strict=True
    ):
        torch.testing.assert_close(parameter, teacher_parameter, rtol=1e-5, atol=0)


def test_feddf_can_start_from_the_weighted_average():
    ctx = context()
    model, _ = finish(FedDF(epochs=1, batch=4096, server_lr=1e-5, start="average"), ctx)
    clients = train_clients(context())
    average = weighted_mean([clients.state(k) for k in range(CLIENTS)], ctx.sizes)
    for name, tensor in copy_model_state(model.module).items():
        torch.testing.assert_close(tensor, average[name], rtol=0, atol=1e-3)


def test_feddf_in_rounds_with_one_client_a_round_is_fedavg():
    """Teacher and student are the same network, so there is nothing to distil: clients, batches, bytes and weights are
    FedAvg's, up to weight decay (1e-4 times the rate)."""
    setting = {"clients": 4, "dtype": torch.float64}
    rounds = {"rounds": 3, "per_round": 1, "local_epochs": 2}
    ctx, plain = context(**setting), context(**setting)
    model, _ = finish(FedDF(**rounds, epochs=1, server_lr=1e-5), ctx)
    average, _ = finish(FedAvgMulti(**rounds), plain)
    for name, tensor in copy_model_state(model.module).items():
        torch.testing.assert_close(
            tensor, copy_model_state(average.module)[name], rtol=1e-7, atol=1e-9
        )
    assert ctx.link.ledger.by_client() == plain.link.ledger.by_client()


def test_feddf_in_rounds_distils_all_clients_into_the_average_of_each_architecture():
    """Two architectures and one step of SGD: the model sent in round 2 is θ̄ - η (∇ τ² KL + 1e-4 θ̄), computed by
    autograd from the models that the clients sent in round 1."""
    ctx = context(clients=4, dtype=torch.float64, models=("mlp:4", "mlp:8"))
    rate = 0.02
    temperature = 2.0
    messages = {"up": {}, "down": {}}
    for direction, log in messages.items():
        send = getattr(ctx.link, direction)

        def record(k, payload, phase, send=send, log=log):
            log.setdefault(k, []).append({n: tensor.clone() for n, tensor in payload.items()})
            return send(k, payload, phase=phase)

        setattr(ctx.link, direction, record)
    method = FedDF(
        rounds=2, local_epochs=1, epochs=1, batch=4096, server_lr=rate, temperature=temperature
    )
    finish(method, ctx)

    def build_network(k, state):
        model = ctx.initial_model(k)
        model.load_state_dict(state)
        return model

    with torch.no_grad():
        client_logits = [build_network(k, messages["up"][k][0])(ctx.public) for k in range(4)]
        teacher = (torch.stack(client_logits).mean(0) / temperature).softmax(1)
    for members in ([0, 2], [1, 3]):
        sizes = [ctx.sizes[k] for k in members]
        average = weighted_mean([messages["up"][k][0] for k in members], sizes)
        student = build_network(members[0], average)
        answers = (student(ctx.public) / temperature).log_softmax(1)
        (temperature**2 * F.kl_div(answers, teacher, reduction="batchmean")).backward()
        norm = sum(p.grad.square().sum() for p in student.parameters()).sqrt()
        assert norm < 10  # nothing is clipped
        for name, parameter in student.named_parameters():
            expected = parameter - rate * (parameter.grad + 1e-4 * parameter)
            for k in members:
                torch.testing.assert_close(messages["down"][k][1][name], expected.detach())


def test_feddf_in_rounds_refuses_a_server_model():
    with pytest.raises(UsageError, match="server_model=auto or rounds=1"):
        FedDF(rounds=2, server_model="mlp:64").validate(context())


def test_fedkds_first_step_descends_towards_logits_weighted_by_class_counts():
    """One Adam step moves every weight by the rate against the sign of the gradient of mean |f(x) - f_S(x)|."""
    ctx = context(dtype=torch.float64)
    rate = 1e-3
    model, _ = finish(FedKD(epochs=1, batch=4096, server_lr=rate, loss="l1"), ctx)
    clients = train_clients(context(dtype=torch.float64))
    counts = torch.stack(
        [torch.bincount(ctx.private.train(k)[1], minlength=CLASSES) for k in range(CLIENTS)]
    ).double()
    shares = counts / counts.sum(0)
    teacher = sum(shares[k] * clients.module(k)(ctx.public) for k in range(CLIENTS)).detach()
    student = ctx.build(ctx.architectures[0], ctx.generator("fedkd", "student"))
    F.l1_loss(student(ctx.public), teacher).backward()
    for before, after in zip(student.parameters(), model.module.parameters(), strict=True):
        has_clear_sign = before.grad.abs() > 1e-6
        change = (after - before).detach()[has_clear_sign]
        torch.testing.assert_close(
            change, -rate * before.grad[has_clear_sign].sign(), rtol=0.02, atol=0
        )


def test_fedkds_bytes_with_and_without_rounds_after():
    ctx = context()
    model, _ = finish(FedKD(epochs=1), ctx)
    d = model.parameters
    for up, down in ctx.link.ledger.by_client().values():
        assert up + down == formulas.count_one_shot_bytes_per_client(d) + 4 * CLASSES
    ctx = context()
    tuned, steps = finish(FedKD(epochs=1, rounds_after=2, local_epochs=1), ctx)
    for up, down in ctx.link.ledger.by_client().values():
        one_shot = formulas.count_one_shot_bytes_per_client(d) + 4 * CLASSES
        assert up + down == one_shot + formulas.count_iterative_bytes_per_client(d, 2)
    assert steps[-1].phase == "rounds"
    assert not torch.equal(tuned.logits(ctx.public), model.logits(ctx.public))


def test_fedkd_can_start_from_an_averaged_model():
    """`rounds_before`: clients and student start from FedAvg's model, whose rounds cost bytes too."""
    ctx = context(dtype=torch.float64)
    finish(FedKD(epochs=1, rounds_before=2, local_epochs=1), ctx)
    d = sum(t.numel() for t in copy_model_state(ctx.initial_model()).values())
    for up, down in ctx.link.ledger.by_client().values():
        one_shot = formulas.count_one_shot_bytes_per_client(d)
        two_rounds = formulas.count_iterative_bytes_per_client(d, 2)
        assert up + down == 2 * (one_shot + two_rounds) + 4 * CLASSES
    average, _ = finish(FedAvgMulti(rounds=2, local_epochs=1), context(dtype=torch.float64))
    without_training = context(dtype=torch.float64)
    # No training after the rounds, so that the local models are the averaged model θ_2.
    without_training.recipe = Recipe(epochs=0, batch_size=64)
    for student_context in (without_training, ctx):
        method = FedKD(epochs=1, batch=4096, server_lr=1e-6, rounds_before=2, local_epochs=1)
        student, _ = finish(method, student_context)
        for name, tensor in copy_model_state(student.module).items():
            torch.testing.assert_close(
                tensor, copy_model_state(average.module)[name], rtol=0, atol=2e-6
            )


# ------------------------------------------------------------------------------------------- ensembles without training
def test_each_rule_of_the_ensemble_combines_answers_as_defined():
    models = {}
    for rule in ("logits", "probabilities", "weighted", "class_counts", "votes"):
        ctx = context(dtype=torch.float64)
        models[rule], _ = finish(Ensemble(rule=rule), ctx)
        d = models[rule].parameters // CLIENTS
        for up, down in ctx.link.ledger.by_client().values():
            class_counts = 4 * CLASSES if rule == "class_counts" else 0
            assert up + down == 2 * 8 * d + class_counts
    x = ctx.public
    client_logits = torch.stack(
        [models["votes"].clients.module(k)(x) for k in range(CLIENTS)]
    ).detach()
    sizes = torch.tensor(ctx.sizes).double()
    counts = torch.stack(
        [torch.bincount(ctx.private.train(k)[1], minlength=CLASSES) for k in range(CLIENTS)]
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
        votes = client_logits[:, i].argmax(1).tolist()
        most_votes = max(votes.count(c) for c in range(CLASSES))
        tied_classes = [c for c in range(CLASSES) if votes.count(c) == most_votes]
        probabilities = client_logits[:, i].softmax(1).mean(0)
        assert answer == max(tied_classes, key=lambda c: float(probabilities[c]))
