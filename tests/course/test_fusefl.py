"""The lesson on FuseFL: its exercises judged by runs and by the method's own stage, its sizes against a network's."""

from fusefl_fixtures import TABLE_4
from lessons import LESSONS

from fedlab_nb.comm.formulas import MIB
from fedlab_nb.course.fusefl import lesson
from fedlab_nb.models import build, count_parameters


def test_sizes_in_the_text():
    """3.7 networks from the paper's own table, which the method's tests compute; 5.9 from a run."""
    one = count_parameters(build("resnet18", (3, 32, 32), 10)) * 4 / MIB
    assert f"as large as {TABLE_4[50][8] / one:.1f} networks" in LESSONS["shelf/fusefl"]
    fused, alone = lesson.runs(["fusefl", "ensemble"], clients=5, seeds=1, epochs=1)
    ratio = 5 * fused.model.parameters / alone.model.parameters
    assert f"as large as {ratio:.1f}, more than an ensemble of five" in LESSONS["shelf/fusefl"]
