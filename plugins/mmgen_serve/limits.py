"""The limits of the service, and the refusal of a request that exceeds one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one client, and all of them together, may ask for.

    body          bytes of a request's body
    bodies        bytes of the bodies of all requests that are not answered yet
    upload_time   seconds in which the body must arrive
    parts         fields and files of a form
    depth         nested lists and objects of JSON
    values        commas, lists and objects of JSON, about the number of its values
    pictures      pictures of a request
    pixels        of one picture
    text          characters of all texts of a request
    texts         texts that are written for a request; also the largest integer among its decoding options
    queue         requests that wait or are being answered
    queue_time    seconds that a request may wait before its answer is begun
    connections   open connections; requests of further ones are refused
    """

    body: int = 20 * 2**20
    bodies: int = 256 * 2**20
    upload_time: float = 30.0
    parts: int = 32
    depth: int = 8
    values: int = 50_000
    pictures: int = 4
    pixels: int = 40_000_000
    text: int = 10_000
    texts: int = 20
    queue: int = 128
    queue_time: float = 30.0
    connections: int = 256


LONGEST = 500  # characters of a message: a client's own keys may stand in it


def _as_one_line(text: str) -> str:
    """A text as one line, cut if it is long."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."


class Refusal(Exception):
    """A request that is not answered: the status of HTTP, one line for the client, and the field that it is about."""

    def __init__(self, status: int, message: str, field: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, _as_one_line(message), code
        self.field = None if field is None else _as_one_line(field)

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the response: when to try again, how to identify oneself, or that nothing more is read."""
        return {401: {"WWW-Authenticate": "Bearer"}, 408: {"Connection": "close"}, 503: {"Retry-After": "1"}}.get(
            self.status, {}
        )

    def as_json(self) -> dict[str, dict[str, str | None]]:
        """The body of the response, in the shape of OpenAI's errors."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": self.message, "type": kind, "param": self.field, "code": self.code}}
