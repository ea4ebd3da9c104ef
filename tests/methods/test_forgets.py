"""Methods that say that their server can forget a client: the other clients send nothing again, and nothing is trained
again. Both are seen in runs, and methods that do not say so lack one of the two.
"""

import pytest

from fedlab_nb.methods import METHODS
from fedlab_nb.methods.context import Context
from fedlab_nb.studies import run
from fedlab_nb.studies.late import late
from fedlab_nb.training import distill, loop, stacked

FORGETFUL = [name for name, method in METHODS.items() if method.info.forgets]
# At their servers these train, or their clients have to take part again.
OTHERS = ("fens", "feddf", "fedpft", "fedavg_multi", "fedma")
SETTING = {"clients": 3, "epochs": 1, "alpha": 1.0}
PUBLIC = {"feddf": {"public": 0.1}}


@pytest.fixture
def server_training(monkeypatch):
    """How many optimizers were made while a server step was under way."""
    made = []
    server = Context.server
    is_server = []

    class Watched:
        def __init__(self, steps):
            self.steps = steps

        def __enter__(self):
            is_server.append(True)
            return self.steps.__enter__()

        def __exit__(self, *error):
            is_server.pop()
            return self.steps.__exit__(*error)

    monkeypatch.setattr(Context, "server", lambda self: Watched(server(self)))
    for module in (distill, loop, stacked):
        make = module.make_optimizer

        def watched(*args, make=make, **options):
            if is_server:
                made.append(args)
            return make(*args, **options)

        monkeypatch.setattr(module, "make_optimizer", watched)
    return made


def can_forget(method: str, server_training: list) -> bool:
    """Whether the server repeats its part with the others' messages as they are, and trains nothing. In a method of
    rounds the others' later messages are not as they were, even if they are as many."""
    if not METHODS[method].info.rounds.startswith("one-shot"):
        return False
    more = PUBLIC.get(method, {})
    alone = late(method, 1, **SETTING, **more, cache=False).alone
    server_training.clear()
    run(method, **SETTING, **more, cache=False)
    return alone and not server_training


@pytest.mark.parametrize("method", FORGETFUL)
def test_who_says_that_it_forgets_can(method, server_training):
    assert can_forget(method, server_training)


@pytest.mark.parametrize("method", OTHERS)
def test_who_does_not_say_so_cannot(method, server_training):
    assert not METHODS[method].info.forgets
    assert not can_forget(method, server_training)
