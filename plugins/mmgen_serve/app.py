"""The application: the addresses of the service, and what each answers."""

from __future__ import annotations

import asyncio
import secrets
import time
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.middleware.trustedhost import TrustedHostMiddleware
from fastapi.responses import FileResponse, JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException as HTTPError

from mmgen import __version__
from mmgen.decoding import DecodingConfig
from mmgen.errors import DataError, MmgenError, PluginError, RecipeError
from mmgen.inference.answers import Answer
from mmgen.inference.predictor import Predictor
from mmgen.inference.query_reader import Prepared

from .answers import as_completion, as_events, word_maps
from .batcher import Batcher
from .guard import Guard, as_refusal
from .requests import ADVICE, MOST_TEXTS, Ask, Chat, Predict, query_of, read_body

WEB = Path(__file__).parent / "web"
TOGETHER = 4  # requests whose pictures a thread reads at a time, on a processor; more only wait longer


class Service:
    """A predictor behind two batchers: of requests whose pictures are read, and of those that the model answers.

    window, batch  of the model's batches, see `Batcher`
    readers        threads that read pictures
    """

    def __init__(self, predictor: Predictor, window: float = 0.005, batch: int = 32, readers: int = 1) -> None:
        self.predictor = predictor
        predictor.names.advice = ADVICE
        for name, config in predictor.names.inputs.items():
            if config.takes is None:  # its reader might take a client's text for a path
                raise PluginError(
                    f"input '{name}': type '{config.type}' does not say what it takes, so it cannot be served; its "
                    'plugin must set takes = "text", "picture" or "file" in the config'
                )
        together = batch if predictor.model.device.type == "cuda" else TOGETHER
        self.reading = Batcher(lambda _, queries: predictor.prepare(queries), together, readers)
        self.writing = Batcher(self._finish, batch, window=window, coming=lambda: self.reading.unanswered > 0)

    def _finish(self, kind: Any, prepared: list[Prepared]) -> list[Answer]:
        options, seed = kind
        return self.predictor.finish(prepared, options, seed)

    @property
    def waiting(self) -> int:
        """How many requests are not answered yet."""
        return self.reading.unanswered + self.writing.unanswered

    async def answer(
        self, body: Predict, options: DecodingConfig | None = None, seed: int | None = None
    ) -> tuple[Prepared, Answer]:
        """A request as it was read, and its answer. Raises DataError."""
        query = await run_in_threadpool(query_of, body, self.predictor)
        prepared = await asyncio.wrap_future(self.reading.submit(query))
        if isinstance(prepared, Answer):
            raise DataError(prepared.error)
        answer = await asyncio.wrap_future(self.writing.submit(prepared, (options, seed)))
        if answer.error:
            raise DataError(answer.error)
        return prepared, answer

    async def texts(self, body: Ask) -> tuple[Prepared, Answer]:
        """As `answer`, for texts. Raises DataError."""
        try:
            options = self.predictor.decoding(body.n, body.decoding)
        except (DataError, RecipeError) as error:
            raise DataError(f"decoding: {error}") from None
        for name in body.decoding:
            value = getattr(options, name)  # as it was read: a string may hold a number
            if isinstance(value, int | float) and abs(value) > MOST_TEXTS:
                raise DataError(f"decoding.{name}: must be at most {MOST_TEXTS}")
        if body.seed is not None and not options.samples:
            raise DataError("seed: has an effect only on a decoding that samples; leave it out")
        seed = secrets.randbits(31) if options.samples and body.seed is None else body.seed
        return await self.answer(body, options, seed)

    def notes(self, answer: Answer) -> dict[str, Any]:
        """The remarks of an answer with the one on the model, and the seed of texts that were sampled."""
        remarks = [*answer.remarks, *filter(None, [self.predictor.limits])]
        return {"remarks": remarks} | ({} if answer.seed is None else {"seed": answer.seed})


def create_app(service: Service, model: str, token: str = "", loopback: bool = True) -> FastAPI:
    """The application that serves a model under the name `model`. `token`: what clients must send; empty: nothing.
    `loopback`: whether it answers to the names of this machine alone, so that no web page reaches it under another."""
    predictor, started = service.predictor, int(time.time())
    app = FastAPI(title=f"mmgen: {model}", version=__version__, redoc_url=None)
    app.add_middleware(Guard, token=token)
    if loopback:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    for kind in (HTTPError, MmgenError, Exception):
        app.add_exception_handler(kind, as_refusal)

    def check_model(name: str | None, writes: bool) -> None:
        if name is not None and name != model:
            raise HTTPException(HTTPStatus.NOT_FOUND, f"model: '{name:.60}' does not exist; the model is '{model}'")
        if writes != (predictor.kind == "text"):
            raise DataError(f"the model gives {predictor.kind}; use {'/v1/predict' if writes else '/v1/ask'}")

    @app.post("/v1/ask", openapi_extra=_body(Ask))
    async def write_texts(request: Request) -> Response:
        body = await read_body(request, Ask)
        check_model(body.model, writes=True)
        prepared, answer = await service.texts(body)
        texts = answer.as_json()["texts"]
        if body.attention:
            maps = await run_in_threadpool(word_maps, predictor, prepared, answer)
            texts = [{**text, "attention": one} for text, one in zip(texts, maps, strict=True)]
        return JSONResponse({"model": model, "texts": texts, **service.notes(answer)})

    @app.post("/v1/predict", openapi_extra=_body(Predict))
    async def predict(request: Request) -> Response:
        body = await read_body(request, Predict)
        check_model(body.model, writes=False)
        _, answer = await service.answer(body)
        line = {name: value for name, value in answer.as_json().items() if name != "id"}
        return JSONResponse({"model": model, "kind": predictor.kind, **line, **service.notes(answer)})

    @app.post("/v1/chat/completions", openapi_extra=_body(Chat))
    async def write_texts_as_openai(request: Request) -> Response:
        body = await read_body(request, Chat)
        check_model(body.model, writes=True)
        prepared, answer = await service.texts(body.as_ask(predictor))
        (slots,), end_id = predictor.collate.slots([prepared.read[0].example]), predictor.model.backbone.end_id
        done = {**as_completion(answer, model, round(slots), end_id), "mmgen": service.notes(answer)}
        return Response(as_events(done), media_type="text/event-stream") if body.stream else JSONResponse(done)

    @app.get("/v1/models")
    def describe_model() -> dict[str, Any]:
        names = predictor.names
        about = {
            "step": predictor.step,
            "gives": predictor.kind,
            "remark": predictor.limits,
            "inputs": {name: names.takes[name] for name in names.inputs if name in names.required},
            "decoding": predictor.recipe.decoding.model_dump() if predictor.kind == "text" else None,
        }
        one = {"id": model, "object": "model", "created": started, "owned_by": "mmgen", "mmgen": about}
        return {"object": "list", "data": [one]}

    @app.get("/health")
    def health() -> dict[str, Any]:
        return {"status": "ok", "waiting": service.waiting}

    for path, file in (("/", "page.html"), ("/page.css", "page.css"), ("/page.js", "page.js")):
        app.get(path, include_in_schema=False, response_class=FileResponse)(lambda file=file: WEB / file)
    return app


def _body(cls: type[BaseModel]) -> dict[str, Any]:
    """A body in OpenAPI's description: JSON, or a form with the same fields."""
    schema = {"schema": cls.model_json_schema()}
    kinds = ("application/json",) if cls is Chat else ("application/json", "multipart/form-data")
    return {"requestBody": {"required": True, "content": dict.fromkeys(kinds, schema)}}
