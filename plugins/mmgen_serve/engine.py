"""The engine: requests wait in a queue, threads read their pictures, another one runs the model on batches of them.

The oldest request decides which decoding is next. Requests with the same decoding join its batch, for at most `window`
seconds, and only while others are being read: a single client never waits for company. A request that samples is a
separate batch, whose texts depend on its seed and its query alone.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field, replace

from mmgen.attention_maps import WordAttention, all_layers, word_attention
from mmgen.decoding import DecodingConfig
from mmgen.errors import DataError, MmgenError
from mmgen.inference.answers import Answer
from mmgen.inference.predictor import Predictor
from mmgen.inference.query import Query
from mmgen.inference.query_reader import Prepared

from .limits import Limits
from .refusals import STOPPING, Refusal

TOGETHER = 4  # requests whose pictures a thread reads at a time, on a processor; more only wait longer
CRASHED = ("CUDA error", "device-side assert")  # after these, no computation of the process succeeds


@dataclass(frozen=True)
class Reply:
    """The answer to a request.

    prepared   the query as it was read
    attention  for each text, the attention of its words; empty unless it was requested
    """

    answer: Answer
    prepared: Prepared
    attention: tuple[WordAttention, ...] = ()


@dataclass
class Job:
    """A request in the engine. `options`: None for a step that predicts. `seed`: of a request that samples."""

    query: Query
    options: DecodingConfig | None = None
    seed: int | None = None
    attention: bool = False
    reply: Future[Reply] = field(default_factory=Future)
    arrived: float = field(default_factory=time.monotonic)
    prepared: Prepared | None = None

    def joins(self, first: Job) -> bool:
        """Whether the job may be answered in the batch of `first`."""
        samples = self.options is not None and self.options.samples
        return self is first or (not samples and self.options == first.options)

    def fail(self, error: BaseException) -> None:
        """Set the error as the result, unless there is a result."""
        with contextlib.suppress(InvalidStateError):  # the client has gone, or the engine has stopped
            self.reply.set_exception(error)


class Engine:
    """Answers jobs in threads of its own.

    window    how long a batch waits for others, in seconds
    batch     the most requests in a batch
    readers   threads that read pictures
    on_crash  called if a thread dies
    on_batch  called with the number of requests of every batch
    """

    def __init__(
        self,
        predictor: Predictor,
        limits: Limits,
        window: float = 0.005,
        batch: int = 32,
        readers: int = 1,
        on_crash: Callable[[], None] = lambda: None,
        on_batch: Callable[[int], None] = lambda size: None,
    ) -> None:
        self.predictor, self.limits, self.window, self.batch = predictor, limits, window, batch
        self.readers, self.on_crash, self.on_batch = readers, on_crash, on_batch
        self.together = batch if predictor.model.device.type == "cuda" else TOGETHER
        self.error: BaseException | None = None  # of the thread that died
        self._retry = predictor.retry()
        self._incoming: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._change = threading.Condition()
        self._jobs: dict[int, Job] = {}  # by identity: all jobs that are not answered
        self._reading = 0  # jobs whose pictures are not read yet
        self._ready: list[Job] = []
        self._stopping = False
        self._open_readers = readers
        targets = (*[("pictures", self._read_all)] * readers, ("model", self._answer_all))
        self._threads = [
            threading.Thread(target=self._run_thread, args=(target,), name=name, daemon=True)
            for name, target in targets
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        """Whether requests are accepted."""
        return self.error is None and not self._stopping

    @property
    def waiting(self) -> int:
        """How many requests are not answered yet."""
        return len(self._jobs)

    def submit(self, job: Job) -> Future[Reply]:
        """Queue a job. Raises Refusal (503) if the queue is full, or the engine stops."""
        with self._change:
            if not self.alive:
                raise Refusal(503, STOPPING)
            if len(self._jobs) >= self.limits.queue:
                raise Refusal(503, f"{self.limits.queue} requests are waiting already; try again in a second")
            self._jobs[id(job)] = job
            self._reading += 1
        job.reply.add_done_callback(lambda _: self._forget_job(job))
        self._incoming.put(job)
        return job.reply

    def stop(self, timeout: float) -> None:
        """Answer the jobs that were accepted, and end both threads; after `timeout` seconds, the rest fails."""
        with self._change:
            self._stopping = True
        self._incoming.put(None)
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _forget_job(self, job: Job) -> None:
        with self._change:
            self._jobs.pop(id(job), None)

    def _run_thread(self, target: Callable[[], None]) -> None:
        try:
            target()
        except BaseException as error:  # the process is of no use without this thread
            with self._change:
                self.error = error
                jobs = [*self._jobs.values()]
                self._change.notify_all()
            for job in jobs:
                job.fail(Refusal(503, "the service has failed and is ending; try again later"))
            self.on_crash()

    def _read_all(self) -> None:
        while jobs := self._take_batch():
            waiting = [job for job in jobs if not job.reply.done() and self._in_time(job)]
            self._read_jobs(waiting)
            with self._change:
                self._reading -= len(jobs)
                self._ready += [job for job in waiting if job.prepared is not None]
                self._ready.sort(key=lambda job: job.arrived)
                self._change.notify_all()
        with self._change:
            self._open_readers -= 1
            if not self._open_readers:
                self._reading = -1  # nothing follows
            self._change.notify_all()

    def _take_batch(self) -> list[Job]:
        """The next jobs whose pictures are read: a share of those that wait, so that no thread is without work. Empty
        at the end."""
        jobs: list[Job] = []
        share = 1
        while len(jobs) < share:
            try:
                job = self._incoming.get(block=not jobs)
            except queue.Empty:
                break
            if job is None:
                self._incoming.put(None)  # for the other threads, and for the next call
                break
            jobs.append(job)
            share = min(self.together, -(-(self._incoming.qsize() + len(jobs)) // self.readers))
        return jobs

    def _read_jobs(self, jobs: list[Job]) -> None:
        """Read the inputs of jobs together, so that they are ready for the model. If that fails, read each job
        separately, so that a job fails alone."""
        try:
            several = self.predictor.prepare([job.query for job in jobs])
        except Exception as error:
            _raise_if_fatal(error)
            if len(jobs) == 1:
                jobs[0].fail(error)
            else:
                for job in jobs:
                    self._read_jobs([job])
            return
        for job, prepared in zip(jobs, several, strict=True):
            if prepared.read is None:
                job.fail(DataError(prepared.answer.error))
            else:
                job.prepared = prepared

    def _in_time(self, job: Job) -> bool:
        waited = time.monotonic() - job.arrived
        if waited > self.limits.queue_time:
            job.fail(Refusal(503, f"the request waited for {waited:.0f} seconds; try again later"))
            return False
        return True

    def _answer_all(self) -> None:
        while batch := self._next_batch():
            batch = [job for job in batch if not job.reply.done() and self._in_time(job)]
            if batch:
                self.on_batch(len(batch))
                self._answer_batch(batch)

    def _next_batch(self) -> list[Job]:
        """The oldest job, with those that join it; empty once nothing follows."""
        with self._change:
            self._change.wait_for(lambda: self._ready or self._reading < 0 or self.error)
            if not self._ready:
                return []
            first, until = self._ready[0], time.monotonic() + self.window
            samples = first.options is not None and first.options.samples
            while not samples and self._reading > 0 and sum(job.joins(first) for job in self._ready) < self.batch:
                if not self._change.wait(max(0.0, until - time.monotonic())):
                    break
            batch = [job for job in self._ready if job.joins(first)][: self.batch]
            taken = {id(job) for job in batch}
            self._ready = [job for job in self._ready if id(job) not in taken]
            return batch

    def _answer_batch(self, batch: list[Job]) -> None:
        """Answer a batch. If it fails, answer each job separately, so that a job fails alone."""
        first = batch[0]
        prepared = [job.prepared for job in batch if job.prepared is not None]  # all of them, since they were read
        try:
            answers = self.predictor.finish(prepared, first.options, self._retry, first.seed)
            replies = [
                Reply(answer, query, self._attention_of_texts(query, answer) if job.attention else ())
                for job, query, answer in zip(batch, prepared, answers, strict=True)
            ]
        except Exception as error:
            _raise_if_fatal(error)
            if len(batch) == 1:
                first.fail(error)
            else:
                for job in batch:
                    self._answer_batch([job])
            return
        for job, reply in zip(batch, replies, strict=True):
            if reply.answer.error:
                job.fail(DataError(reply.answer.error))
            else:
                with contextlib.suppress(InvalidStateError):  # the client has gone
                    job.reply.set_result(reply)

    def _attention_of_texts(self, query: Prepared, answer: Answer) -> tuple[WordAttention, ...]:
        """The attention of each text of an answer."""
        if answer.error or query.read is None:
            return ()
        example = query.read.rows[0].example
        examples = [
            replace(example, labels={**example.labels, "prompt": text.prompt}) if text.prompt else example
            for text in answer.texts
        ]
        tokens, names = [text.tokens for text in answer.texts], [*self.predictor.names.inputs]
        return tuple(word_attention(self.predictor.model, examples, names, tokens, {"all": all_layers}))


def _raise_if_fatal(error: Exception) -> None:
    """Raise an error after which the process computes nothing any more."""
    if not isinstance(error, MmgenError) and any(text in str(error) for text in CRASHED):
        raise error
