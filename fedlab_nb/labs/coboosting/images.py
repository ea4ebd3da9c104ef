"""The synthetic images of an epoch, of Co-Boosting and of the other data-free methods (DENSE, F-DAFL, F-ADI)."""

from ipywidgets import HBox, SelectionSlider

from ...panels import LabSpec, LabView, PanelState, made, player
from ...plots import Picture
from ...plots.synthetic import gallery, one_of_each
from ..runs import where

DATA_FREE = {  # the methods whose labs have these images alone: their knobs
    "dense": ("epochs", "images", "generator_steps", "bn_weight", "div_weight", "temperature"),
    "fdafl": ("epochs", "images", "generator_steps", "temperature"),
    "fadi": ("epochs", "images", "temperature"),
}


class Images(LabView):
    """The synthetic images of an epoch, and a replay over the epochs."""

    name, title, ready = "images", "Synthetic images", "live"
    empty = "Press Run. The images of the generator then appear here, epoch by epoch."

    def __init__(self) -> None:
        shown = {"help": "The epoch whose images are shown", "options": [("–", 0)]}
        self.epoch = made(SelectionSlider, label="Server epoch", width=330, label_width=88, **shown)
        self.play = player(self.epoch, interval=700, tooltip="Replay the epochs")
        self.controls = [HBox([self.play]), self.epoch]  # only the slider redraws

    def adapt(self, state: PanelState) -> None:
        options = [(str(t), i) for i, t in enumerate(state.report.synthetic_epochs)]
        if list(self.epoch.options) != options:
            last = self.epoch.index in (None, len(self.epoch.options) - 1)
            index = len(options) - 1 if last else min(self.epoch.index, len(options) - 1)
            self.epoch.options = options
            self.epoch.index, self.play.max = index, len(options) - 1

    def draw(self, state: PanelState) -> Picture:
        report, dataset = state.report, state.federation.dataset
        alike = dataset.x_test.shape[1:] == report.synthetic_images.shape[2:]
        about = {"setting": where(state), "epochs": planned(state), "klass": state.klass}
        about |= {"frame": min(self.epoch.value, len(report.synthetic_epochs) - 1)}
        return gallery(report, state.class_names, real=one_of_each(dataset) if alike else None, **about)


def planned(state: PanelState) -> int:
    """Epochs of the run that goes on; 0 once it has ended."""
    return state.knobs["epochs"] if state.outcome is None else 0


def data_free(method: str) -> LabSpec:
    """What the lab of `method` (a key of DATA_FREE) consists of."""
    settings = {"seeds": 1, "ensemble.rule": "logits"}  # the teacher
    return LabSpec(method, ("ensemble", "feddf"), DATA_FREE[method], settings=settings, views=(Images,), name="lab")
