"""The application: routes of the service over an engine, and what each answers."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from mmgen.attention_maps import WordAttention
from mmgen.errors import PluginError
from mmgen.inference.predictor import Predictor

from .chat import Chat, completion, events, to_ask, without_neutral
from .engine import Engine, Job, Reply
from .guard import Guard, json_response
from .limits import Limits
from .metrics import Metrics
from .openapi import description
from .refusals import Refusal
from .requests import ADVICE, Ask, Body, Predict, decoding_of, parse_form, parse_json, query_of, validated

WEB = Path(__file__).parent / "web"


class Service:
    """The handlers of all routes, and the engine behind them.

    model          the name of the model in requests and responses
    window, batch, readers  see `Engine`
    """

    def __init__(
        self,
        predictor: Predictor,
        model: str,
        limits: Limits,
        window: float = 0.005,
        batch: int = 32,
        readers: int = 1,
    ) -> None:
        self.predictor, self.model, self.limits = predictor, model, limits
        self.metrics, self.started = Metrics(), int(time.time())
        self.engine = Engine(predictor, limits, window, batch, readers, on_batch=self.metrics.count_batch)
        predictor.names.advice = ADVICE
        for name, config in predictor.names.inputs.items():
            if config.takes is None:  # its reader might take a client's text for a path
                raise PluginError(
                    f"input '{name}': type '{config.type}' does not say what it takes, so it cannot be served; its "
                    'plugin must set takes = "text", "picture" or "file" in the config'
                )
        self.labels = () if predictor.kind == "text" else predictor.names.labels

    async def ask(self, request: Request) -> Response:
        ask = await self._read(request, Ask)
        self._check_model(ask.model, "text", "/v1/predict")
        reply, seed = await self._ask(request, ask)
        texts: list[dict[str, Any]] = reply.answer.as_json()["texts"]
        for text, attention in zip(texts, reply.attention, strict=False):
            text["attention"] = _attention_as_json(attention)
        body = {"model": self.model, "texts": texts, "remarks": self._remarks(reply)}
        return json_response(body | ({} if seed is None else {"seed": seed}))

    async def predict(self, request: Request) -> Response:
        body = await self._read(request, Predict)
        self._check_model(body.model, self.predictor.kind, "/v1/ask")
        query = await run_in_threadpool(query_of, body, self.predictor, self.limits)
        reply = await self._reply(request, Job(query))
        line = {name: value for name, value in reply.answer.as_json().items() if name != "id"}
        remarks = {"remarks": self._remarks(reply)}
        return json_response({"model": self.model, "kind": self.predictor.kind} | line | remarks)

    async def chat(self, request: Request) -> Response:
        content = await request.body()
        chat = validated(Chat, without_neutral(await run_in_threadpool(parse_json, content, self.limits)))
        self._check_model(chat.model, "text", "/v1/predict")
        reply, seed = await self._ask(request, await run_in_threadpool(to_ask, chat, self.predictor, self.limits))
        slots = round(self.predictor.slots(reply.prepared))
        done = completion(reply, slots, self.model, self.predictor.model.backbone.end_id)
        done["mmgen"] = {"remarks": self._remarks(reply)} | ({} if seed is None else {"seed": seed})
        if chat.stream:
            return Response(events(done), media_type="text/event-stream")
        return json_response(done)

    async def models(self, request: Request) -> Response:
        names = self.predictor.names
        about = {
            "step": self.predictor.step,
            "gives": self.predictor.kind,
            "remark": self.predictor.limits,
            "inputs": {name: names.takes[name] for name in names.inputs if name in names.required},
            "decoding": self.predictor.recipe.decoding.model_dump() if self.predictor.kind == "text" else None,
        }
        model = {"id": self.model, "object": "model", "created": self.started, "owned_by": "mmgen", "mmgen": about}
        return json_response({"object": "list", "data": [model]})

    async def health(self, request: Request) -> Response:
        if not self.engine.alive:
            raise Refusal(503, "the model does not run any more; start the service again")
        return json_response({"status": "ok", "waiting": self.engine.waiting})

    async def show_metrics(self, request: Request) -> Response:
        return PlainTextResponse(self.metrics.text(self.engine.waiting), media_type="text/plain; version=0.0.4")

    async def openapi(self, request: Request) -> Response:
        return json_response(description(self.predictor, self.model, self.labels))

    def _remarks(self, reply: Reply) -> list[str]:
        """The remarks of an answer, and the one on the model."""
        return [*reply.answer.remarks, *([self.predictor.limits] if self.predictor.limits else [])]

    async def _read(self, request: Request, cls: type[Body]) -> Body:
        """The body of a request: a form, or JSON. Raises Refusal."""
        if request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
            most = self.limits.parts
            async with request.form(max_files=most, max_fields=most, max_part_size=self.limits.body) as form:
                return validated(cls, await parse_form(form, cls, self.limits))
        content = await request.body()
        return validated(cls, await run_in_threadpool(parse_json, content, self.limits))

    def _check_model(self, model: str | None, kind: str, alternative: str) -> None:
        """Raises Refusal for another model, and for a step that gives something else."""
        if model is not None and model != self.model:
            raise Refusal(
                404, f"model: '{model:.60}' does not exist; the model is '{self.model}'", "model", "model_not_found"
            )
        if (kind == "text") != (self.predictor.kind == "text") or alternative == "/v1/ask" and kind == "text":
            raise Refusal(400, f"the model gives {self.predictor.kind}; use {alternative}")

    async def _ask(self, request: Request, ask: Ask) -> tuple[Reply, int | None]:
        """The reply to a request for texts, and the seed of a decoding that samples."""
        query = await run_in_threadpool(query_of, ask, self.predictor, self.limits)
        options = decoding_of(ask, self.predictor, self.limits)
        if not options.samples and ask.seed is not None:
            raise Refusal(400, "seed: has an effect only on a decoding that samples; leave it out", "seed")
        seed = (secrets.randbits(31) if ask.seed is None else ask.seed) if options.samples else None
        return await self._reply(request, Job(query, options, seed, ask.attention)), seed

    async def _reply(self, request: Request, job: Job) -> Reply:
        """The engine's reply. If the client goes away first, the job is cancelled, and ClientDisconnect raised."""
        reply = asyncio.wrap_future(self.engine.submit(job))
        gone = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait((reply, gone), return_when=asyncio.FIRST_COMPLETED)
            if not reply.done():
                raise ClientDisconnect
            return reply.result()
        finally:
            reply.cancel()
            gone.cancel()


async def _disconnected(request: Request) -> None:
    """Return when the client of a request has gone. The body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _attention_as_json(attention: WordAttention) -> dict[str, Any]:
    """The attention of one text: for each word, its shares on each unit of each input; at last special tokens, and the
    text itself."""
    return {
        "words": list(attention.words),
        "inputs": {
            name: {"names": list(units.names), "boxes": [list(box) for box in units.boxes]}
            for name, units in attention.units.items()
        },
        "weights": [[round(share, 4) for share in row] for row in attention.weights["all"].tolist()],
    }


async def _http_error(request: Request, error: Exception) -> Response:
    """Errors of routing and of forms, as JSON."""
    assert isinstance(error, HTTPException)
    reasons = {
        404: "the address does not exist; /openapi.json lists all",
        405: f"the address does not take {request.method}; /openapi.json lists what it takes",
    }
    refused = Refusal(error.status_code, reasons.get(error.status_code, f"the form cannot be read: {error.detail}"))
    return json_response(refused.as_json(), refused.status, dict(error.headers or {}))


def application(
    service: Service, token: str = "", loopback: bool = True, connections: Callable[[], int] = lambda: 0
) -> Starlette:
    """The ASGI application; parameters as in `Guard`."""
    routes = [
        Route("/v1/ask", service.ask, methods=["POST"]),
        Route("/v1/predict", service.predict, methods=["POST"]),
        Route("/v1/chat/completions", service.chat, methods=["POST"]),
        Route("/v1/models", service.models),
        Route("/health", service.health),
        Route("/metrics", service.show_metrics),
        Route("/openapi.json", service.openapi),
        Route("/", lambda request: FileResponse(WEB / "page.html"), name="page"),
        *(Route(f"/{name}", _serve_file(name)) for name in ("page.css", "page.js")),
    ]
    guard = Middleware(
        Guard,
        limits=service.limits,
        metrics=service.metrics,
        token=token,
        loopback=loopback,
        connections=connections,
    )
    return Starlette(routes=routes, middleware=[guard], exception_handlers={HTTPException: _http_error})


def _serve_file(name: str) -> Callable[[Request], Response]:
    return lambda request: FileResponse(WEB / name)
