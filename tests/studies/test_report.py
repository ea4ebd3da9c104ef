"""A method's report: its declared type, the same from a run and from the store, and reports of running methods."""

from dataclasses import dataclass

import numpy as np
import pytest

from fedlab_nb.methods import METHODS, EnsembleModel, Method, Report, register
from fedlab_nb.methods.gauss import GaussReport
from fedlab_nb.methods.local import LocalReport
from fedlab_nb.studies import job, run

QUICK = {"clients": 3, "epochs": 1}


@dataclass(frozen=True, eq=False)
class PathReport(Report):
    """`path [T]`; `scores`: by layer."""

    path: np.ndarray | None = None
    scores: dict[str, float] | None = None


def test_a_report_survives_the_store():
    for name, report_type in (("local", LocalReport), ("gauss", GaussReport)):
        fresh = run(name, **QUICK)
        stored = run(name, **QUICK)
        assert stored.cached
        assert type(fresh.report) is type(stored.report) is report_type
        assert (
            fresh.report.get_plain_fields()
            == stored.report.get_plain_fields()
            == stored.to_json()["extras"]
        )
        arrays = fresh.report.get_array_fields()
        assert arrays.keys() == stored.report.get_array_fields().keys()
        assert all(
            np.array_equal(array, stored.report.get_array_fields()[key])
            for key, array in arrays.items()
        )
    assert type(run("fedavg", **QUICK).report) is Report
    assert not Report().get_fields_that_are_not_none()
    with pytest.raises(TypeError):
        PathReport(paht=np.zeros(2))


def test_a_running_method_can_show_its_report_and_another_type_is_refused():
    from fedlab_nb.methods import Progress

    @register("shown", title="Shown", paper="a test", rounds="one-shot", traffic="0")
    @dataclass(frozen=True)
    class Running(Method):
        """A test."""

        report = PathReport
        wrong = False

        def run(self, ctx):
            model = EnsembleModel((yield from ctx.local_training()))
            for t in range(1, 3):
                model.report = PathReport(path=np.arange(t), scores={"a": float(t)})
                yield Progress("steps", t, 2, model=model)
            if self.wrong:
                model.report = LocalReport()
            return model

    try:
        events = list(job("shown", cache=False, **QUICK))
        assert {event.report for event in events if event.phase == "local training"} == {None}
        assert [len(event.report.path) for event in events if event.phase == "steps"] == [1, 2]
        outcome = events[-1].outcome
        assert outcome.report.scores == {"a": 2.0}
        assert outcome.to_json()["extras"] == {"scores": {"a": 2.0}}
        Running.wrong = True
        error = list(job("shown", cache=False, **QUICK))[-1].error
        assert isinstance(error, TypeError)
        assert "LocalReport" in str(error)
        assert "PathReport" in str(error)
    finally:
        del METHODS["shown"]
