"""How the servers of this package send to a page: at once.

A kernel answers with several small messages. By default TCP holds a small one back until the page has confirmed the one
before it, and a browser confirms after up to 40 ms: a picture that follows a slider would wait that long. Tornado calls
it Nagle's algorithm and delayed ACKs (`WebSocketHandler.set_nodelay`). `servers.toml` names this class to both servers,
and `jupyter.make_server_options` leaves it out where this file cannot be imported.
"""

from typing import Any

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection


class PromptConnection(ZMQChannelsWebsocketConnection):
    """The usual connection of a page to its kernel, without the wait."""

    def connect(self) -> Any:
        try:
            self.websocket_handler.set_nodelay(True)
        except (
            Exception
        ) as error:  # of another version of tornado: pages are slower then, but they work
            self.log.warning("Small messages are not sent at once: %r", error)
        return super().connect()
