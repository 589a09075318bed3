"""Embeddings and pictures, through openai and google-genai. Each outcome is a line of JSON."""

import base64
import io
import os
import struct
import zlib

import openai
from google import genai
from google.genai import types

import cells

URL = os.environ["TOLLGATE_URL"]
KEY = os.environ["TOLLGATE_KEY"]
TIMEOUT_SECONDS = 60

client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, timeout=TIMEOUT_SECONDS, max_retries=0)
google = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=URL))


def near(one, other):
    return sum(a * b for a, b in zip(one, other, strict=True))


def png(width, height, pixel):
    """A PNG image. The function `pixel` returns four numbers for each pixel."""
    rows = b"".join(
        b"\0" + b"".join(bytes(pixel(x, y)) for x in range(width)) for y in range(height)
    )

    def chunk(kind, data):
        sum_ = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", sum_)

    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def file(name, data):
    told = io.BytesIO(data)
    told.name = name
    return told


def size_of(picture):
    data = base64.b64decode(picture)
    assert data.startswith(b"\x89PNG"), data[:8]
    return struct.unpack(">II", data[16:24])


def embeddings_by_default():
    # The client requests base64 and decodes it.
    texts = ["the cat sleeps", "the cat slept", "stocks fell"]
    answer = client.embeddings.create(model="maker/embed", input=texts)
    assert answer.model == "maker/embed"
    first, second, third = (item.embedding for item in answer.data)
    assert len(first) == 1536 and abs(near(first, first) - 1) < 1e-3
    assert near(first, second) > near(first, third)
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > 0


def embeddings_as_floats():
    options = {"model": "maker/embed", "input": "hello", "dimensions": 8}
    floats = client.embeddings.create(**options, encoding_format="float").data[0].embedding
    default = client.embeddings.create(**options).data[0].embedding
    assert len(floats) == 8
    assert all(abs(a - b) < 1e-6 for a, b in zip(floats, default, strict=True))


def embeddings_of_tokens():
    answer = client.embeddings.create(model="maker/embed", input=[[1, 2, 3], [4]], dimensions=8)
    assert [item.index for item in answer.data] == [0, 1]
    assert answer.usage.prompt_tokens == 4
    assert client.embeddings.create(model="maker/embed", input=[5, 6]).usage.prompt_tokens == 2


def embeddings_over_contents():
    answer = client.embeddings.create(model="maker/contents", input=["a", "b"], dimensions=8)
    assert len(answer.data) == 2 and len(answer.data[1].embedding) == 8


def embed_content():
    for model in ("maker/contents", "maker/embed"):
        answer = google.models.embed_content(
            model=model,
            contents=["the cat sleeps", "the cat slept"],
            config=types.EmbedContentConfig(output_dimensionality=64),
        )
        first, second = (embedding.values for embedding in answer.embeddings)
        assert len(first) == 64 and near(first, second) > 0.4


def generate():
    answer = client.images.generate(
        model="maker/gpt", prompt="a red circle", size="64x48", quality="low", n=2
    )
    assert [size_of(item.b64_json) for item in answer.data] == [(64, 48)] * 2
    assert answer.quality == "low" and answer.size == "64x48" and answer.output_format == "png"
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens


def generate_stream():
    options = {"model": "maker/gpt", "prompt": "a red circle", "size": "64x64"}
    events = list(client.images.generate(**options, stream=True, partial_images=2))
    kinds = [event.type.rsplit(".")[-1] for event in events]
    assert kinds == ["partial_image", "partial_image", "completed"], kinds
    assert all(size_of(event.b64_json) == (64, 64) for event in events)
    assert events[-1].usage.output_tokens > 0


def generate_other_families():
    url = client.images.generate(model="maker/video-a", prompt="x", response_format="url")
    assert url.data[0].url.startswith("https://")
    options = {"model": "maker/content", "prompt": "x", "size": "64x64"}
    whole = client.images.generate(**options, response_format="b64_json")
    assert size_of(whole.data[0].b64_json) == (64, 64)
    events = list(client.images.generate(**options, stream=True))
    assert events[-1].type == "image_generation.completed" and events[-1].url


def edit():
    source = png(48, 48, lambda x, y: (1, 2, 3, 255))
    mask = png(48, 48, lambda x, y: (0, 0, 0, 0 if x < 24 else 255))
    options = {"model": "maker/gpt", "prompt": "a yellow star"}
    one = client.images.edit(**options, image=file("a.png", source), mask=file("m.png", mask))
    assert size_of(one.data[0].b64_json) == (48, 48)
    several = [file("a.png", source), file("b.png", source)]
    for model in ("maker/gpt", "maker/video-a", "maker/content"):
        options = {"model": model, "prompt": "a yellow star"}
        if model != "maker/gpt":
            options["response_format"] = "b64_json"
        answer = client.images.edit(**options, image=several)
        assert answer.data[0].b64_json, model
        for told in several:
            told.seek(0)


def edit_stream():
    source = png(32, 32, lambda x, y: (1, 2, 3, 255))
    options = {"model": "maker/gpt", "prompt": "a star", "stream": True, "partial_images": 1}
    events = list(client.images.edit(**options, image=file("a.png", source)))
    assert [event.type for event in events] == ["image_edit.partial_image", "image_edit.completed"]


def edit_json():
    def link(pixel):
        data = base64.b64encode(png(16, 16, pixel)).decode()
        return {"type": "image_url", "url": "data:image/png;base64," + data}

    source = link(lambda x, y: (9, 9, 9, 255))
    mask = link(lambda x, y: (0, 0, 0, 0 if x < 8 else 255))
    for pictures in ({"image": source}, {"image": source, "mask": mask}, {"images": [source, source]}):
        body = {"model": "maker/gpt", "prompt": "x", **pictures}
        answer = client.post("/images/edits", body=body, cast_to=object)
        assert size_of(answer["data"][0]["b64_json"]) == (16, 16)


def refusals():
    for more in ({"quality": "hd"}, {"style": "vivid"}, {"background": "transparent", "output_format": "jpeg"}):
        try:
            client.images.generate(model="maker/gpt", prompt="x", **more)
        except openai.BadRequestError as error:
            assert error.code in ("unsupported_parameter", "invalid_request"), error.code
        else:
            raise AssertionError(f"not refused: {more}")


def broken_stream():
    options = {"model": "maker/broken", "prompt": "x", "size": "64x64", "stream": True}
    try:
        list(client.images.generate(**options, partial_images=2))
    except openai.APIError as error:
        assert error.code == "upstream_error", error.code
    else:
        raise AssertionError("no error was raised")


CELLS = [
    embeddings_by_default, embeddings_as_floats, embeddings_of_tokens, embeddings_over_contents,
    embed_content, generate, generate_stream, generate_other_families, edit, edit_stream,
    edit_json, refusals, broken_stream,
]

if __name__ == "__main__":
    cells.run(CELLS)
