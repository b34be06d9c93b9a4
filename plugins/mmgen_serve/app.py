"""The application: the addresses of the service, what each answers, and what is refused."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Header, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.trustedhost import TrustedHostMiddleware
from fastapi.responses import FileResponse, JSONResponse
from starlette.exceptions import HTTPException

from mmgen import __version__
from mmgen.attention_maps import all_layers, word_attention
from mmgen.decoding import DecodingConfig
from mmgen.errors import DataError, MmgenError, PluginError, UnavailableError
from mmgen.inference.answers import Answer
from mmgen.inference.predictor import Predictor, Task
from mmgen.inference.query import Query
from mmgen.inference.query_reader import Prepared

from .batcher import Batcher
from .requests import MOST_TEXTS, Ask, Chat, Fill, Inputs, Texts, as_completion

WEB = Path(__file__).parent / "web"
MOST_BYTES, MOST_VALUES = 20 * 2**20, 20  # of a body; of an input, such as pictures
TOGETHER = 4  # requests whose pictures a thread reads at a time, on a processor; more only wait longer
log = logging.getLogger("mmgen.serve")


class Service:
    """A predictor behind two batchers: of requests whose pictures are read, and of those that the model answers.

    batch    the most requests that the model answers together
    readers  threads that read pictures
    """

    def __init__(self, predictor: Predictor, batch: int = 32, readers: int = 1) -> None:
        self.predictor = predictor
        predictor.names.advice = 'add "{name}" to "inputs"'
        for name, config in predictor.names.inputs.items():
            if config.takes is None:  # its reader might take a client's text for a path
                raise PluginError(
                    f"input '{name}' cannot be served: the config of type '{config.type}' must set `takes`"
                )
        together = batch if predictor.model.device.type == "cuda" else TOGETHER
        self.reading = Batcher(lambda _, read: predictor.prepare(*zip(*read, strict=True)), together, readers)
        self.writing = Batcher(lambda options, prepared: predictor.finish(prepared, options), batch)

    async def answer(self, body: Ask) -> tuple[Prepared, Answer]:
        """A request as it was read, and its answer. Raises DataError."""
        predictor, options = self.predictor, self.predictor.decoding(body.n, body.decoding)
        for name in body.decoding:
            value = getattr(options, name, None)  # as it was read: a string may hold a number
            if isinstance(value, int | float) and abs(value) > MOST_TEXTS:
                raise DataError(f"decoding.{name}: must be at most {MOST_TEXTS}")
        return await self._answer(body, options, predictor.seed_of(options, body.seed))

    def check_writes(self) -> None:
        """Raises DataError if the model predicts, and writes no texts."""
        if self.predictor.kind != "text":
            raise DataError(f"the model gives {self.predictor.kind}; use /v1/predict")

    async def about_texts(self, body: Texts | Fill) -> Answer:
        """How probable texts are, or the blanks of a text filled. Raises DataError."""
        self.check_writes()
        if isinstance(body, Texts):
            return (await self._answer(body, Predictor.measure, texts=tuple(body.texts)))[1]
        return (await self._answer(body, partial(Predictor.fill_blanks, top=body.top), texts=(body.text,)))[1]

    async def _answer(
        self, body: Inputs, options: DecodingConfig | Task, seed: int | None = None, texts: tuple[str, ...] = ()
    ) -> tuple[Prepared, Answer]:
        """No value of a client is taken for a path, a key or an address."""
        if any(isinstance(value, list) and len(value) > MOST_VALUES for value in body.inputs.values()):
            raise DataError(f"inputs: an input has at most {MOST_VALUES} values")
        predictor, query = self.predictor, Query("", body.inputs, folder=None, place="the request", texts=texts)
        prepared = await asyncio.wrap_future(self.reading.submit((query, seed)))
        failed = isinstance(prepared, Answer)
        answer = prepared if failed else await asyncio.wrap_future(self.writing.submit(prepared, options))
        if answer.error:
            raise DataError(answer.error)
        return prepared, replace(answer, remarks=(*answer.remarks, *filter(None, [predictor.limits])))

    def word_maps(self, prepared: Prepared, answer: Answer) -> list[dict[str, Any]]:
        """Of each text: for each word its shares on the units of each input, on special tokens and the text itself."""
        example, predictor = prepared.read[0].example, self.predictor
        prompts = [{"prompt": text.prompt} if text.prompt else {} for text in answer.texts]
        examples = [replace(example, labels={**example.labels, **prompt}) for prompt in prompts]
        tokens, inputs = [text.tokens for text in answer.texts], [*predictor.names.inputs]
        return [
            {
                "words": shown.words,
                "inputs": {name: {"names": unit.names, "boxes": unit.boxes} for name, unit in shown.units.items()},
                "weights": [[round(share, 4) for share in row] for row in shown.weights["all"].tolist()],
            }
            for shown in word_attention(predictor.model, examples, inputs, tokens, {"all": all_layers})
        ]


def create_app(service: Service, model: str, token: str = "", loopback: bool = True) -> FastAPI:
    """The application that serves a model under the name `model`. `token`: what clients must send; empty: nothing.
    `loopback`: whether it answers to the names of this machine alone, so that no web page reaches it under another."""
    predictor, started = service.predictor, int(time.time())
    app = FastAPI(title=f"mmgen: {model}", version=__version__, redoc_url=None, max_body_size=MOST_BYTES)
    if loopback:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    for kind in (HTTPException, RequestValidationError, MmgenError, Exception):
        app.add_exception_handler(kind, as_refusal)

    def check_token(authorization: str = Header("")) -> None:
        if token and not hmac.compare_digest(authorization.encode(), f"Bearer {token}".encode()):
            raise HTTPException(401, 'the token is missing or wrong; send the header "Authorization: Bearer TOKEN"')

    api = APIRouter(prefix="/v1", dependencies=[Depends(check_token)])

    @api.post("/ask")
    @api.post("/predict")
    async def ask(body: Ask) -> JSONResponse:
        prepared, answer = await service.answer(body)
        line = {"model": model, "kind": predictor.kind, **answer.as_json()}
        if body.attention and answer.texts:
            maps = await run_in_threadpool(service.word_maps, prepared, answer)
            line["texts"] = [{**text, "attention": seen} for text, seen in zip(line["texts"], maps, strict=True)]
        return JSONResponse(line)

    @api.post("/likelihood")
    async def measure_texts(body: Texts) -> JSONResponse:
        return JSONResponse({"model": model, **(await service.about_texts(body)).as_json()})

    @api.post("/fill")
    async def fill_blanks(body: Fill) -> JSONResponse:
        line = (await service.about_texts(body)).as_json()
        return JSONResponse({"model": model, "reads": predictor.model.generator.blanks_read, **line})

    @api.post("/chat/completions")
    async def write_texts_as_openai(body: Chat) -> Response:
        service.check_writes()
        if body.model != model:
            raise HTTPException(404, f"model: '{body.model:.60}' does not exist; the model is '{model}'")
        _, answer = await service.answer(body.as_ask(predictor))
        done = as_completion(answer, model, predictor.model.backbone.end_id, bool(body.stream))
        if not body.stream:
            return JSONResponse(done)
        return Response(f"data: {json.dumps(done)}\n\ndata: [DONE]\n\n", media_type="text/event-stream")

    @api.get("/models")
    def describe_model() -> dict[str, Any]:
        names = predictor.names
        details = {
            "step": predictor.step,
            "gives": predictor.kind,
            "remark": predictor.limits,
            "inputs": {name: names.takes[name] for name in names.inputs if name in names.required},
            "decoding": predictor.recipe.decoding.model_dump() if predictor.kind == "text" else None,
        }
        card = {"id": model, "object": "model", "created": started, "owned_by": "mmgen", "mmgen": details}
        return {"object": "list", "data": [card]}

    @app.get("/health")
    def health() -> dict[str, Any]:
        return {"status": "ok", "waiting": len(service.reading.unanswered) + len(service.writing.unanswered)}

    for path, file in (("/", "page.html"), ("/page.css", "page.css"), ("/page.js", "page.js")):
        app.get(path, include_in_schema=False, response_class=FileResponse)(lambda file=file: WEB / file)
    app.include_router(api)
    return app


def as_refusal(request: Request, error: Exception) -> Response:
    """An error as clients get it: a line in the shape of OpenAI's interface, with nothing of the program's insides."""
    status, text = 500, "the service failed to answer this request; its log has the reason"
    if isinstance(error, HTTPException):
        status, text = error.status_code, error.detail
    elif isinstance(error, RequestValidationError):
        mistake = error.errors()[0]
        status, text = 400, f"{'.'.join(map(str, mistake['loc'][1:])) or 'the body'}: {mistake['msg']}"
    elif isinstance(error, MmgenError):
        status = 400 if isinstance(error, DataError) else 501 if isinstance(error, UnavailableError) else 500
        text = " ".join(str(error).split())
    else:
        log.error("%s: %s: %s", request.url.path, type(error).__name__, str(error).partition("\n")[0])
    kind = "invalid_request_error" if status < 500 else "server_error"
    return JSONResponse({"error": {"message": text[:500], "type": kind, "param": None, "code": None}}, status)
