"""The stage in a notebook: a widget whose entry is the joined modules of `front/`. It carries messages both ways.

To the browser, each a dict with a `kind`, and buffers where something is large:

    data        about: names, words and the cast of what is shown, `digest`: of the samples
    samples     labels (uint16) and images (bytes) of the training and the test samples; once a window and digest
    setting     the controls were changed in Python: {alpha, clients, seed, moves}
    selection   another client or class is looked at: {client, class_index}, None for no one in particular
    federation  setting: that it is of, question: that it answers, if any, sizes: of the clients; their training
                samples, client by client (uint32)
    partitions  clients, seed, alphas: the owners that the α slider would deal, [alphas, samples] (uint16), sent ahead
    results     accuracies, bands and seeds by method, which are `older`; what everybody says of each test sample
    flights     what each method has sent, phase by phase (see `front.flight`), at which setting
    answers     what everybody says of one image, [methods + clients, C] (float32); of a table its row, of recordings
                the curve, [channels, steps] (float32)
    sum         how one method comes to its answer to one image (see `arithmetic`)
    stored, job, words   the stored bands; what runs; what the next run would cost

A kernel that is busy with the cells below answers nobody. So what the first window needs stands in the widget itself
(`opening`) until a window has opened it: data, samples, federation, partitions and stored bands, of the package's own
data sets alone.

From the browser: open, samples, opened, deal (`isEcho`: it repeats what Python has said), train, stop, ask, explain,
selection, dataset, "open methods", "open settings". Several views of one panel may send them, and each hears what the
others are answered: so `deal` and `train` carry a name (`question`) that their answer repeats, and who asks for data or
samples says which `view` it is.
Otherwise samples travel in messages and in no trait: so they are in no saved notebook.
"""

import json
from collections.abc import Callable
from typing import Any

import anywidget
import traitlets

from ..front import join_front_modules, read_stylesheet


def make_stage_module_text() -> str:
    """The module that anywidget imports: all that the stage needs, in one text."""
    return (
        f"const {{ renderPanel }} = {join_front_modules('panel_entry')};\n"
        f"const stylesheet = {json.dumps(read_stylesheet())};\n"
        "export default { render: (context) => renderPanel(context, stylesheet) };\n"
    )


class Stage(anywidget.AnyWidget):
    """receive(message): called with each message of the browser.

    opening: messages by kind for the first window, each {content, buffers}; {}: a window asks for them
    """

    _esm = make_stage_module_text()
    opening: Any = traitlets.Dict().tag(sync=True)

    def __init__(self, receive: Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self.on_msg(lambda _, content, buffers: receive(content))
