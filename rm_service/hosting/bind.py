"""Addresses to listen on, as settings have them: `host:port`, IPv6 in brackets, port 0 for any free one."""


class BadBindError(ValueError):
    """`bind` is not `host:port`."""

    def __init__(self, bind: str) -> None:
        super().__init__(f"{bind!r} is not host:port")
        self.bind = bind


def host_and_port(bind: str) -> tuple[str, int]:
    """Raises BadBindError."""
    host, colon, port = bind.rpartition(":")
    if not colon or not port.isdecimal():
        raise BadBindError(bind)
    return host.removeprefix("[").removesuffix("]"), int(port)
