"""A connection from the server to a page that sends small messages without a delay (TCP_NODELAY).

A kernel answers with several small messages. By default TCP holds a small message back until the one before it has been
acknowledged (Nagle's algorithm), and a browser acknowledges after up to 40 ms (delayed ACKs). A picture that follows a
slider would wait that long. `servers.toml` names this class to both servers; `jupyter.make_server_options` leaves it
out if this file cannot be imported.
"""

from typing import Any

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection


class PromptConnection(ZMQChannelsWebsocketConnection):
    """The usual connection of a page to its kernel, without the wait."""

    def connect(self) -> Any:
        try:
            self.websocket_handler.set_nodelay(True)
        except Exception as error:
            # Another version of tornado may not have it. Then pages are slower, but they work.
            self.log.warning("Small messages are not sent at once: %r", error)
        return super().connect()
