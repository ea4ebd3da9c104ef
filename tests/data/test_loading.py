"""`load` from several threads, as when one panel downloads and another is used."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fedlab_nb.data import digits, glyphs, load, registry

SMALL = {"n_train": 60, "n_test": 20, "n_public": 0}
PATIENCE = 30  # seconds


@pytest.fixture
def slow(monkeypatch):
    """Loading glyphs begins, and ends when it may; how often it began."""
    began = threading.Event()
    may_end = threading.Event()
    times = []
    load_glyphs = glyphs.load

    def waiting(*arguments, **options):
        times.append(options)
        began.set()
        assert may_end.wait(PATIENCE)
        return load_glyphs(*arguments, **options)

    monkeypatch.setattr(glyphs, "load", waiting)
    monkeypatch.setattr(registry, "_cache", type(registry._cache)())
    yield began, may_end, times
    may_end.set()


def test_who_wants_other_data_does_not_wait_for_a_download(slow):
    began, may_end, _ = slow
    with ThreadPoolExecutor(2) as pool:
        download = pool.submit(load, "glyphs", **SMALL)
        assert began.wait(PATIENCE)
        assert pool.submit(load, "digits").result(PATIENCE).digest == digits.describe().digest
        assert not download.done()
        may_end.set()
        assert len(download.result(PATIENCE).x_train) == SMALL["n_train"]


def test_who_wants_the_same_data_gets_the_same_and_it_is_loaded_once(slow):
    began, may_end, times = slow
    with ThreadPoolExecutor(2) as pool:
        two = [pool.submit(load, "glyphs", **SMALL) for _ in range(2)]
        assert began.wait(PATIENCE)
        may_end.set()
        one, other = (each.result(PATIENCE) for each in two)
    assert one is other
    assert len(times) == 1


def test_a_download_that_failed_is_tried_again(monkeypatch):
    monkeypatch.setattr(registry, "_cache", type(registry._cache)())
    answers = iter([OSError("no network"), "the data"])

    def failing(*_, **__):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(glyphs, "load", failing)
    with pytest.raises(OSError, match="no network"):
        load("glyphs", **SMALL)
    assert load("glyphs", **SMALL) == "the data"
