"""Send the messages of a window to a panel with a stage, and read what the panel has sent."""

import numpy as np

START_SETTING = {"alpha": 0.1, "clients": 10, "seed": 4, "moves": []}


def open_window(panel):
    """Send what a new window sends first."""
    panel._dispatch_browser_message({"kind": "open"})
    request_federation(panel, START_SETTING, 1)
    panel._dispatch_browser_message({"kind": "opened"})


def request_federation(panel, setting, revision):
    """Ask for the federation of a setting, as a window does when a slider moves."""
    message = {"kind": "deal", "revision": revision, "question": f"window {revision}"}
    panel._dispatch_browser_message({**message, "setting": setting})


def find_last(sent, kind):
    """(content, buffers) of the last message of this kind."""
    for content, buffers in reversed(sent):
        if content["kind"] == kind:
            return content, buffers
    raise AssertionError(f"no message of the kind {kind} was sent")


def read_shards(sent):
    """The samples of each client, as they were sent last."""
    content, (buffer,) = find_last(sent, "federation")
    samples = np.frombuffer(buffer, dtype=np.uint32)
    assert len(samples) == sum(content["sizes"])
    return np.split(samples, np.cumsum(content["sizes"])[:-1])


def read_owners(sent):
    """The client of each sample, where no sample has two."""
    shards = read_shards(sent)
    owners = np.zeros(sum(map(len, shards)), dtype=np.uint16)
    for k, shard in enumerate(shards):
        owners[shard] = k
    return owners
