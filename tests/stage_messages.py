"""What a window sends to a panel with a stage, and what such a panel has sent to its window."""

import numpy as np

START = {"alpha": 0.1, "clients": 10, "seed": 4, "moves": []}


def open_window(panel):
    panel._dispatch_browser_message({"kind": "open"})
    deal(panel, START, 1)
    panel._dispatch_browser_message({"kind": "opened"})


def deal(panel, setting, revision):
    message = {"kind": "deal", "revision": revision, "question": f"window {revision}"}
    panel._dispatch_browser_message({**message, "setting": setting})


def last(sent, kind):
    return next(
        (content, buffers) for content, buffers in reversed(sent) if content["kind"] == kind
    )


def read_shards(sent):
    content, (buffer,) = last(sent, "federation")
    samples = np.frombuffer(buffer, dtype=np.uint32)
    assert len(samples) == sum(content["sizes"])
    return np.split(samples, np.cumsum(content["sizes"])[:-1])


def read_owners(sent):
    """The one client of each sample."""
    shards = read_shards(sent)
    owners = np.zeros(sum(map(len, shards)), dtype=np.uint16)
    for k, shard in enumerate(shards):
        owners[shard] = k
    return owners
