"""Refusals: requests that are not answered, with their status, and the text of an error for clients."""

from __future__ import annotations

from asyncio import CancelledError

from mmgen.errors import DataError, MmgenError, UnavailableError

STOPPING = "the service is stopping; try again later"
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


def refusal_of(error: BaseException) -> Refusal:
    """The text of an error for clients. Errors of the program show nothing of its insides."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, CancelledError):  # what was accepted was not answered before the service's end
        return Refusal(503, STOPPING)
    if isinstance(error, DataError):
        return Refusal(400, str(error))
    if isinstance(error, UnavailableError):
        return Refusal(501, str(error))
    if isinstance(error, MmgenError):
        return Refusal(500, str(error))
    return Refusal(500, "the service failed to answer this request; its log has the reason")
