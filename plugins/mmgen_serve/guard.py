"""The guard around the application: token, origin and size of requests; headers and errors of responses."""

from __future__ import annotations

import hmac
import logging
from http import HTTPStatus

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mmgen.errors import DataError, MmgenError, UnavailableError

from .requests import MOST_BYTES

OPEN = ("/", "/page.css", "/page.js", "/health")  # these need no token: they show nothing of the model
PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src blob:; connect-src "
    "'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REASONS = {"Not Found": "the address does not exist; /docs lists all"}
log = logging.getLogger("mmgen.serve")


class Guard:
    """ASGI middleware. `token`: what clients must send as "Authorization: Bearer TOKEN"; empty: nothing."""

    def __init__(self, app: ASGIApp, token: str = "") -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = 0

        async def limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > MOST_BYTES:
                raise HTTPException(413, f"the body has more than {MOST_BYTES:,} bytes; send smaller pictures")
            return message

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update({"x-content-type-options": "nosniff", "cache-control": "no-store"})
                if scope["path"] in OPEN:
                    headers["content-security-policy"] = PAGE
            await send(message)

        refused = self._refused(Request(scope)) if scope["type"] == "http" else None
        await (refused(scope, receive, marked) if refused else self.app(scope, limited, marked))

    def _refused(self, request: Request) -> Response | None:
        origin = request.headers.get("origin", "").partition("://")[2]
        if origin and origin != request.headers.get("host"):
            return refusal(403, "requests of other web pages are not answered; call the service from a program")
        sent, wanted = request.headers.get("authorization", ""), f"Bearer {self.token}"
        if self.token and request.url.path not in OPEN and not hmac.compare_digest(sent.encode(), wanted.encode()):
            return refusal(401, 'the token is missing or wrong; send the header "Authorization: Bearer TOKEN"')
        return None


def refusal(status: int, message: str) -> Response:
    """An error in the shape of OpenAI's interface, in one line."""
    kind = "invalid_request_error" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error"
    line = " ".join(message.split())[:500]
    return JSONResponse({"error": {"message": line, "type": kind, "param": None, "code": None}}, status)


def as_refusal(request: Request, error: Exception) -> Response:
    """What a client gets for an error. Errors of the program show nothing of its insides."""
    if isinstance(error, HTTPException):
        return refusal(error.status_code, REASONS.get(error.detail, error.detail))
    if isinstance(error, MmgenError):
        status = 400 if isinstance(error, DataError) else 501 if isinstance(error, UnavailableError) else 500
        return refusal(status, str(error))
    if not isinstance(error, ClientDisconnect):
        log.error("%s: %s: %s", request.url.path, type(error).__name__, str(error).partition("\n")[0])
    return refusal(500, "the service failed to answer this request; its log has the reason")
