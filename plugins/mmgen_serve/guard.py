"""The guard around the application: checks identity, origin, size and time of a request; its log line; JSON errors."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
import time
import uuid
from collections.abc import Callable

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .limits import Limits
from .metrics import Metrics
from .refusals import Refusal, refusal_of

OPEN = ("/", "/page.css", "/page.js", "/health")  # paths that need no token: they show nothing of the model
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
GONE = 499  # the status of a request whose client has gone, in the log and in metrics
REQUEST_ID = re.compile(r"[\w.-]{1,64}")
HEADERS = (  # of every response
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src blob:; "
        b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
)
log = logging.getLogger("mmgen.serve")


class Guard:
    """ASGI middleware around the application.

    token        the token that clients must send; empty: none
    loopback     whether the service listens on loopback only; then it answers to the names of loopback alone, so that
                 a web page cannot reach it under another name
    connections  a function: the number of open connections
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        metrics: Metrics,
        token: str = "",
        loopback: bool = True,
        connections: Callable[[], int] = lambda: 0,
    ) -> None:
        self.app, self.limits, self.metrics = app, limits, metrics
        self.token, self.loopback, self.connections = token, loopback, connections
        self.held = 0  # bytes of the bodies of requests that are not answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request, start = Request(scope), time.perf_counter()
        sent_id = request.headers.get("x-request-id", "")
        request_id = sent_id if REQUEST_ID.fullmatch(sent_id) else uuid.uuid4().hex
        status = 0
        body = Body(self, receive)

        async def respond(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message["headers"], *HEADERS, (b"x-request-id", request_id.encode())]
                message = {**message, "headers": headers}
            await send(message)

        try:
            self._check_request(request)
            await self.app(scope, body.receive, respond)
        except ClientDisconnect:
            status = status or GONE  # nobody waits for a response
        except (Exception, asyncio.CancelledError) as error:
            refused = refusal_of(error)
            if refused.status == 500:
                log.error(f"{request_id}: {type(error).__name__}: {str(error).partition(chr(10))[0]:.200}")
            if not status:
                await json_response(refused.as_json(), refused.status, refused.headers)(scope, receive, respond)
        finally:
            self.held -= body.size
            seconds = time.perf_counter() - start
            route = getattr(scope.get("route"), "path", "other")
            self.metrics.count_request(route, status, seconds)
            log.info(f"{request_id} {scope['method']} {route} {status} {1000 * seconds:.0f} ms")

    def _check_request(self, request: Request) -> None:
        """Raises Refusal."""
        if self.connections() > self.limits.connections:
            raise Refusal(503, f"there are {self.limits.connections} connections already; try again in a second")
        host = request.headers.get("host", "")
        if self.loopback and re.sub(r":\d+$", "", host).lower() not in LOOPBACK:
            raise Refusal(421, "the service answers to 127.0.0.1 and localhost; use one of these names")
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            raise Refusal(403, "requests of other web pages are not answered; call the service from a program")
        if self.token and request.url.path not in OPEN:
            sent = request.headers.get("authorization", "")
            if not hmac.compare_digest(sent.encode("utf-8", "replace"), f"Bearer {self.token}".encode()):
                raise Refusal(401, 'the token is missing or wrong; send the header "Authorization: Bearer TOKEN"')
        length = request.headers.get("content-length", "0")
        size = int(length) if length.isdigit() else 0
        self.check_size(size, self.held + size)

    def check_size(self, size: int, held: int) -> None:
        """Raises Refusal for a body of too many bytes, and if all bodies together have too many (`held`)."""
        if size > self.limits.body:
            raise Refusal(413, f"the body has more than {self.limits.body:,} bytes; send smaller pictures")
        if held > self.limits.bodies:
            raise Refusal(
                503, f"all requests together have {self.limits.bodies:,} bytes already; try again in a second"
            )


class Body:
    """The body of a request: `receive` counts bytes as they arrive, and ends at the deadline.

    size  bytes that have arrived; they are part of `guard.held`
    """

    def __init__(self, guard: Guard, receive: Receive) -> None:
        self.guard, self.size, self._receive = guard, 0, receive
        self._deadline, self._complete = time.monotonic() + guard.limits.upload_time, False

    async def receive(self) -> Message:
        """The next message. Raises Refusal."""
        if self._complete:  # all that may follow is that the client goes away, at any time
            return await self._receive()
        limits = self.guard.limits
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, self._deadline - time.monotonic()))
        except TimeoutError:
            raise Refusal(
                408, f"the body did not arrive within {limits.upload_time:g} seconds; send it faster"
            ) from None
        arrived = len(message.get("body", b""))
        self.size += arrived
        self.guard.held += arrived
        self.guard.check_size(self.size, self.guard.held)
        self._complete = not message.get("more_body", False)
        return message


def json_response(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A response of JSON; texts in UTF-8."""
    content = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")
    return Response(content, status, headers, "application/json")
