"""Methods that claim that their server can forget a client: the other clients send nothing again, and the server trains
nothing again. Runs show both; methods without the claim lack one of the two.
"""

import pytest

from fedlab_nb.methods import METHODS
from fedlab_nb.methods.context import Context
from fedlab_nb.studies import run
from fedlab_nb.studies.late import late
from fedlab_nb.training import distill, loop, stacked

CLAIMING = [name for name, method in METHODS.items() if method.info.forgets]
# Their servers train, or their clients have to take part again.
UNABLE = ("fens", "feddf", "fedpft", "fedavg_multi", "fedma")
SETTING = {"clients": 3, "epochs": 1, "alpha": 1.0}
PUBLIC = {"feddf": {"public": 0.1}}


@pytest.fixture
def server_training(monkeypatch):
    """The arguments of every optimizer that is made during a server step."""
    optimizers = []
    server = Context.server
    server_steps = []

    class WatchedServer:
        def __init__(self, steps):
            self.steps = steps

        def __enter__(self):
            server_steps.append(True)
            return self.steps.__enter__()

        def __exit__(self, *error):
            server_steps.pop()
            return self.steps.__exit__(*error)

    monkeypatch.setattr(Context, "server", lambda self: WatchedServer(server(self)))
    for module in (distill, loop, stacked):
        make = module.make_optimizer

        def watched(*args, make=make, **options):
            if server_steps:
                optimizers.append(args)
            return make(*args, **options)

        monkeypatch.setattr(module, "make_optimizer", watched)
    return optimizers


def can_forget(method: str, server_training: list) -> bool:
    """Whether the server repeats its part with the others' messages unchanged and trains nothing. In a method of rounds
    the others' later messages depend on the forgotten client, even if their number is the same."""
    if not METHODS[method].info.rounds.startswith("one-shot"):
        return False
    setting = SETTING | PUBLIC.get(method, {})
    sends_alone = late(method, 1, **setting, cache=False).alone
    server_training.clear()
    run(method, **setting, cache=False)
    return sends_alone and not server_training


@pytest.mark.slow
@pytest.mark.parametrize("method", CLAIMING)
def test_a_method_that_claims_to_forget_can(method, server_training):
    assert can_forget(method, server_training)


@pytest.mark.slow
@pytest.mark.parametrize("method", UNABLE)
def test_a_method_without_the_claim_cannot(method, server_training):
    assert not METHODS[method].info.forgets
    assert not can_forget(method, server_training)
