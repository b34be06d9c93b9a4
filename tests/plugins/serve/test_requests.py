"""Bodies of requests: JSON and forms, their limits, and the pictures in them."""

import base64
from dataclasses import replace

import pytest
from kit import served
from kit.pictures import png
from mmgen_serve.limits import Limits
from mmgen_serve.refusals import Refusal
from mmgen_serve.requests import Ask, Predict, decode, parse_json, query_of, validated

from mmgen.examples import All

LIMITS = Limits(values=1000, depth=3, pictures=2, pixels=5000, text=20)
MANY = "the JSON has more than 1,000 values; send less"
FEW = "the JSON has more than 3 nested levels; send less"


def refused(call, *values) -> Refusal:
    with pytest.raises(Refusal) as error:
        call(*values)
    return error.value


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not valid JSON (line 1, column 1); send a JSON object in UTF-8"),
        (b'{"a": 1,\n}', "the body is not valid JSON (line 2, column 1); send a JSON object in UTF-8"),
        (b'{"a": NaN}', "the body is not valid JSON; send a JSON object in UTF-8"),
        (b'{"n": ' + b"9" * 5000 + b"}", "the body is not valid JSON; send a JSON object in UTF-8"),
        (b"\xff\xfe{", "the body is not valid JSON; send a JSON object in UTF-8"),
        (b"[1]", "the body is [1]; send a JSON object"),
        (b'{"a": {"b": [[1]]}}', FEW),
        (b'{"a":' * 1000, FEW),
        (b"[" * 1000, FEW),
        (b"[" * 1001, MANY),
        pytest.param(b'{"a": [' + b"[]," * 3_000_000 + b"[]]}", MANY, id="three million lists"),
    ],
)
def test_bodies_that_are_no_object(body, message):
    error = refused(parse_json, body, LIMITS)
    assert (error.status, error.message) == (400, message)


def test_as_many_levels_as_allowed():
    assert parse_json(b'{"a": {"b": [1]}}', LIMITS) == {"a": {"b": [1]}}


def test_a_wrong_field_is_named():
    assert refused(validated, Ask, {"attention": "yes"}).message == 'attention: must be true or false, not "yes"'
    assert refused(validated, Predict, {"n": 1}).field == "n"


@pytest.mark.parametrize("address", ["http://x.org/a.png", "file:///etc/passwd", "ftp://x/y", "data:image/png,abc"])
def test_addresses_are_never_fetched(address):
    error = refused(decode, address, "picture")
    assert error.message == "picture: must be a data: URL with base64; addresses are never fetched"


def test_base64_is_decoded_strictly():
    assert decode(base64.b64encode(b"abc").decode(), "p") == b"abc"
    assert decode("data:image/png;base64,YWJj", "p") == b"abc"
    wrong = "p: not valid base64; encode the bytes of the file"
    assert refused(decode, "YWJ", "p").message == wrong and refused(decode, "a b", "p").message == wrong
    assert refused(decode, "", "p").message == "p: is empty; encode the bytes of the file"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"image": png(100, 51)}, "a picture has more than 5,000 pixels; send a smaller one"),
        ({"image": png(30_000, 30_000)}, "a picture has more than 5,000 pixels; send a smaller one"),
        ({"image": [served.encoded()] * 3}, "the request has 3 pictures; the limit is 2"),
        ({"caption": [""] * 21}, "inputs: the texts have 21 characters; the limit is 20"),
        ({"caption": "x" * 21}, "inputs: the texts have 21 characters; the limit is 20"),
        (
            {"image": [[served.encoded()]]},
            'inputs.image: must be a picture in base64, or {"picture": ..., "boxes": [...]}',
        ),
        (
            {"image": {"picture": {"picture": served.encoded(), "boxes": [[0, 0, 1, 1]]}}},
            'inputs.image: must be a picture in base64, or {"picture": ..., "boxes": [...]}',
        ),
        ({"image": 7}, 'inputs.image: must be a picture in base64, or {"picture": ..., "boxes": [...]}'),
        (
            {"image": {"features": [[1.0]]}},
            'inputs.image: must be a picture in base64, or {"picture": ..., "boxes": [...]}',
        ),
        ({"image": {"picture": "/etc/passwd"}}, "inputs.image.picture: not valid base64; encode the bytes of the "
         "file"),
    ],
)  # fmt: skip
def test_limits_of_pictures_and_texts(predictor, inputs, message):
    body = Ask(inputs={"image": served.encoded(), "caption": "x", **inputs})
    assert refused(query_of, body, predictor, LIMITS).message == message


def test_photographs_of_phones_are_taken_and_larger_ones_are_not(predictor):
    """Of 48, 50 and 64 million pixels; the content of these files is refused later."""
    body = {"inputs": {"image": None, "caption": "x"}}
    for width, height in ((8064, 6048), (8160, 6144), (9248, 6936)):
        body["inputs"]["image"] = png(width, height)
        assert query_of(Ask(**body), predictor, Limits()).inputs["image"] == png(width, height)
    body["inputs"]["image"] = png(12000, 9000)
    message = "a picture has more than 89,478,485 pixels; send a smaller one"
    assert refused(query_of, Ask(**body), predictor, Limits()).message == message


def test_several_pictures_are_all(predictor):
    body = Ask(inputs={"image": [served.encoded("red"), served.encoded("blue")], "caption": "x"})
    query = query_of(body, predictor, replace(LIMITS, pixels=10_000))
    assert query.inputs["image"] == All((served.picture("red"), served.picture("blue")))


def test_a_path_is_no_picture(predictor, tmp_path):
    """A file that is there is not read, however it is named."""
    path = tmp_path / "abcd"
    path.write_bytes(served.picture())
    body = Ask(inputs={"image": str(path), "caption": "x"})
    assert "not valid base64" in refused(query_of, body, predictor, LIMITS).message
