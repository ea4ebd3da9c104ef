"""`load` from several threads, as when one panel downloads a data set while another is used."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fedlab_nb.data import digits, glyphs, load, registry

SMALL = {"n_train": 60, "n_test": 20, "n_public": 0}
PATIENCE = 30  # seconds


@pytest.fixture
def slow_glyphs(monkeypatch):
    """Loading glyphs takes until `may_end` is set: (began, may_end, the options of each call)."""
    began = threading.Event()
    may_end = threading.Event()
    calls = []
    load_glyphs = glyphs.load

    def load_when_allowed(*arguments, **options):
        calls.append(options)
        began.set()
        assert may_end.wait(PATIENCE)
        return load_glyphs(*arguments, **options)

    monkeypatch.setattr(glyphs, "load", load_when_allowed)
    monkeypatch.setattr(registry, "_cache", type(registry._cache)())
    yield began, may_end, calls
    may_end.set()


def test_other_data_are_loaded_while_a_download_is_running(slow_glyphs):
    began, may_end, _ = slow_glyphs
    with ThreadPoolExecutor(2) as pool:
        download = pool.submit(load, "glyphs", **SMALL)
        assert began.wait(PATIENCE)
        assert pool.submit(load, "digits").result(PATIENCE).digest == digits.describe().digest
        assert not download.done()
        may_end.set()
        assert len(download.result(PATIENCE).x_train) == SMALL["n_train"]


def test_two_threads_that_load_the_same_data_share_one_download(slow_glyphs):
    began, may_end, calls = slow_glyphs
    with ThreadPoolExecutor(2) as pool:
        loads = [pool.submit(load, "glyphs", **SMALL) for _ in range(2)]
        assert began.wait(PATIENCE)
        may_end.set()
        first, second = (future.result(PATIENCE) for future in loads)
    assert first is second
    assert len(calls) == 1


def test_a_failed_download_is_tried_again(monkeypatch):
    monkeypatch.setattr(registry, "_cache", type(registry._cache)())
    answers = iter([OSError("no network"), "the data"])

    def load_or_fail(*_, **__):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(glyphs, "load", load_or_fail)
    with pytest.raises(OSError, match="no network"):
        load("glyphs", **SMALL)
    assert load("glyphs", **SMALL) == "the data"
