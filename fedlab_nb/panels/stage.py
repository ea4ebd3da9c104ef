"""The stage in a notebook: a widget whose entry is the joined modules of `front/`. It carries messages both ways.

To the browser, each a dict with a `kind`, and buffers where something is large:

    data        names, words and methods; `digest` of the samples
    samples     labels (uint16) and images (bytes) of the training and the test samples; once for a window and digest
    setting     the controls were changed in Python: {alpha, clients, seed, moves}
    selection   another client or class was selected: {client, class_index}, None for none
    federation  its `setting`; the `question` that it answers, if any; the clients' `sizes`; their training samples,
                client by client (uint32)
    partitions  `clients`, `seed` and `alphas`; the owner of each sample with each α, [alphas, samples] (uint16), which
                is sent before the α slider moves
    results     accuracies, bands and seeds by method; which are `older`; all answers on each test sample
    flights     what each method has sent, phase by phase (see `front.flight`), and at which setting
    answers     all answers on one image, [methods + clients, C] (float32); of a table its row, of recordings the
                curve, [channels, steps] (float32)
    sum         the sum from which a method's answer on one image results (see `arithmetic`)
    stored      the stored bands
    job         what runs
    words       what the next run would cost

A kernel that is busy with the cells below cannot answer. So the messages that the first window needs are in the widget
itself (`opening`) until a window has opened it: data, samples, federation, partitions and stored bands. Only the
package's own data sets are opened in this way.

From the browser: open, samples, opened, deal (`isEcho`: it repeats a setting that Python has sent), train, stop, ask,
explain, selection, dataset, "open methods", "open settings".

Several windows may show one panel, and each of them receives all answers. So `deal` and `train` have a name
(`question`) that their answer repeats, and a window that asks for data or samples says which `view` it is. Apart from
`opening`, samples are in messages and in no trait, so that they are in no saved notebook.
"""

import json
from collections.abc import Callable
from typing import Any

import anywidget
import traitlets

from ..front import join_front_modules_into_expression, read_stage_stylesheet


def make_stage_javascript_text() -> str:
    """Make the JavaScript module that anywidget imports, with everything that the stage needs."""
    return (
        f"const {{ renderPanel }} = {join_front_modules_into_expression('panel_entry')};\n"
        f"const stylesheet = {json.dumps(read_stage_stylesheet())};\n"
        "export default { render: (context) => renderPanel(context, stylesheet) };\n"
    )


class Stage(anywidget.AnyWidget):
    """The widget of the stage.

    receive: called with each message of the browser
    opening: messages by kind for the first window, each {content, buffers}; {}: a window has to ask for them
    """

    _esm = make_stage_javascript_text()
    opening: Any = traitlets.Dict().tag(sync=True)

    def __init__(self, receive: Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self.on_msg(lambda _, content, buffers: receive(content))
