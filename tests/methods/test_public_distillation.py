"""FedDF, FedKD and the untrained ensembles: against hand-made values, bytes, roles."""

import torch
import torch.nn.functional as F
from distillation_runs import C, M, context, finish, trained_clients

from fedlab_nb.comm import formulas
from fedlab_nb.data import federate
from fedlab_nb.methods.base import weighted_mean
from fedlab_nb.methods.ensemble import Ensemble
from fedlab_nb.methods.fedavg_multi import FedAvgMulti
from fedlab_nb.methods.feddf import FedDF
from fedlab_nb.methods.fedkd import FedKD
from fedlab_nb.models import model_state
from fedlab_nb.training import Recipe


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


def test_fedkds_first_step_goes_down_the_gradient_towards_class_count_weighted_logits():
    """One Adam step moves every weight by the rate against the sign of the gradient of mean |f(x) - f_S(x)|."""
    ctx = context(dtype=torch.float64)
    rate = 1e-3
    model, _ = finish(FedKD(epochs=1, batch=4096, server_lr=rate, loss="l1"), ctx)
    clients = trained_clients(context(dtype=torch.float64))
    counts = torch.stack([torch.bincount(ctx.private.train(k)[1], minlength=C) for k in range(M)]).double()
    shares = counts / counts.sum(0)
    teacher = sum(shares[k] * clients.module(k)(ctx.public) for k in range(M)).detach()
    student = ctx.build(ctx.architectures[0], ctx.generator("fedkd", "student"))
    F.l1_loss(student(ctx.public), teacher).backward()
    for before, after in zip(student.parameters(), model.module.parameters(), strict=True):
        sure = before.grad.abs() > 1e-6
        moved = (after - before).detach()[sure]
        torch.testing.assert_close(moved, -rate * before.grad[sure].sign(), rtol=0.02, atol=0)


def test_fedkds_bytes_with_and_without_rounds_after():
    ctx = context()
    model, _ = finish(FedKD(epochs=1), ctx)
    d = model.parameters
    for up, down in ctx.link.ledger.by_client().values():
        assert up + down == formulas.one_shot_bytes(d) + 4 * C
    ctx = context()
    tuned, steps = finish(FedKD(epochs=1, rounds_after=2, local_epochs=1), ctx)
    for up, down in ctx.link.ledger.by_client().values():
        assert up + down == formulas.one_shot_bytes(d) + 4 * C + formulas.iterative_bytes(d, 2)
    assert steps[-1].phase == "rounds" and not torch.equal(tuned.logits(ctx.public), model.logits(ctx.public))


def test_fedkd_from_an_averaged_model():
    """`rounds_before`: the clients go on from FedAvg's model, which costs its rounds; the student starts there, too."""
    ctx = context(dtype=torch.float64)
    finish(FedKD(epochs=1, rounds_before=2, local_epochs=1), ctx)
    d = sum(t.numel() for t in model_state(ctx.initial_model()).values())
    for up, down in ctx.link.ledger.by_client().values():
        assert up + down == 2 * (formulas.one_shot_bytes(d) + formulas.iterative_bytes(d, 2)) + 4 * C
    average, _ = finish(FedAvgMulti(rounds=2, local_epochs=1), context(dtype=torch.float64))
    still = context(dtype=torch.float64)
    still.recipe = Recipe(epochs=0, batch_size=64)  # no further training: rounds and local models are θ_2 alone
    for first in (still, ctx):
        student, _ = finish(FedKD(epochs=1, batch=4096, server_lr=1e-6, rounds_before=2, local_epochs=1), first)
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
    own = torch.stack([models["votes"].clients.module(k)(x) for k in range(M)]).detach()
    sizes = torch.tensor(ctx.sizes).double()
    counts = torch.stack([torch.bincount(ctx.private.train(k)[1], minlength=C) for k in range(M)]).double()
    close = {"rtol": 0, "atol": 1e-7}
    torch.testing.assert_close(models["logits"].logits(x), own.mean(0), **close)
    torch.testing.assert_close(
        models["weighted"].logits(x), torch.einsum("m,mnc->nc", sizes / sizes.sum(), own), **close
    )
    shares = counts / counts.sum(0)
    torch.testing.assert_close(models["class_counts"].logits(x), torch.einsum("mc,mnc->nc", shares, own), **close)
    for i, answer in enumerate(models["votes"].predict(x).tolist()):
        names = own[:, i].argmax(1).tolist()
        most = max(names.count(c) for c in range(C))
        assert names.count(answer) == most
        mean = own[:, i].softmax(1).mean(0)
        assert answer == max((c for c in range(C) if names.count(c) == most), key=lambda c: float(mean[c]))
