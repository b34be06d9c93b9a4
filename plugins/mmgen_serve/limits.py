"""The limits of the service: sizes, times and numbers of requests."""

from __future__ import annotations

from dataclasses import dataclass

from mmgen.features.images import MOST_PIXELS


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
    pixels        of one picture; by default what every command reads
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
    pixels: int = MOST_PIXELS
    text: int = 10_000
    texts: int = 20
    queue: int = 128
    queue_time: float = 30.0
    connections: int = 256
