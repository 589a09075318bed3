"""Videos through google-genai: operations, interactions, files. Each outcome is a line of JSON."""

import os
import struct
import time
import urllib.request
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

warnings.simplefilter("ignore")

from google import genai
from google.genai import errors, types

import cells

URL = os.environ["TOLLGATE_URL"]
KEY = os.environ["TOLLGATE_KEY"]
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360f8cf500f00038601805a347d6b0000000049454e44ae426082"
)
SECONDS_MAX = 60
client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=URL))


def poll_until(poll, is_over):
    """Polls until the operation is done."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        told = poll()
        if is_over(told):
            return told
        time.sleep(0.1)
    raise AssertionError(f"it does not end: {told}")


def seconds_of(film):
    """The duration in the header of an MP4 file."""
    assert film[4:8] == b"ftyp", film[:16]
    at = film.index(b"mvhd") + 4
    scale, length = struct.unpack(">II", film[at + 12 : at + 20])
    return length / scale


def make_video(prompt, image=None, **config):
    operation = client.models.generate_videos(
        model="maker/film",
        prompt=prompt,
        image=image,
        config=types.GenerateVideosConfig(**config),
    )
    return poll_until(lambda: client.operations.get(operation), lambda told: told.done)


def operation_and_download():
    operation = make_video(
        "a boat", number_of_videos=1, duration_seconds=4, aspect_ratio="9:16", resolution="720p"
    )
    assert not operation.error, operation.error
    [made] = operation.response.generated_videos
    assert made.video.uri.startswith("https://gateway.example/v1beta/files/"), made.video.uri
    film = client.files.download(file=made.video)
    assert seconds_of(film) == 4 and made.video.video_bytes == film
    with TemporaryDirectory() as folder:
        path = Path(folder) / "film.mp4"
        made.video.save(str(path))
        assert path.read_bytes() == film


def operation_from_an_image():
    image = types.Image(image_bytes=PIXEL, mime_type="image/png")
    operation = make_video("it moves [inline]", image=image)
    film = client.files.download(file=operation.response.generated_videos[0].video)
    assert seconds_of(film) == 8


def operation_that_fails():
    operation = make_video("[fail]")
    assert operation.error["code"] == 3 and operation.error["message"], operation.error


def operation_that_is_filtered():
    operation = make_video("[refuse]")
    assert not operation.error
    response = operation.response
    assert response.rai_media_filtered_count == 1 and response.rai_media_filtered_reasons
    assert not response.generated_videos


def operation_refused():
    for config in ({"duration_seconds": 5}, {"number_of_videos": 2}, {"resolution": "480p"}):
        try:
            make_video("x", **config)
        except errors.ClientError as error:
            assert (error.code, error.status) == (400, "INVALID_ARGUMENT"), error
        else:
            raise AssertionError(f"not refused: {config}")


def interaction(text, **more):
    created = client.interactions.create(
        model="maker/omni",
        input=text,
        background=True,
        response_format=[{"type": "video", "duration": "3s", "resolution": "720p"}],
        **more,
    )
    assert created.status in ("queued", "in_progress"), created.status
    return poll_until(
        lambda: client.interactions.get(created.id),
        lambda told: told.status not in ("queued", "in_progress"),
    )


def interaction_with_video():
    told = interaction("fog over a lighthouse")
    assert told.status == "completed" and told.model == "maker/omni", told
    [step] = told.steps
    video = step.content[-1]
    assert (video.type, video.mime_type) == ("video", "video/mp4"), video
    prefix = "https://gateway.example"
    assert video.uri.startswith(prefix + "/media/"), video.uri
    with urllib.request.urlopen(URL + video.uri.removeprefix(prefix), timeout=30) as answer:
        assert answer.headers["content-type"] == "video/mp4"
        assert seconds_of(answer.read()) == 3
    assert told.usage.total_output_tokens == 3 * 5792, told.usage


def interaction_that_fails():
    told = interaction("[fail]")
    assert told.status == "failed" and told.steps[0].error, told


def interaction_refused():
    try:
        client.interactions.create(model="maker/omni", input="x", previous_interaction_id="i")
    except Exception as error:
        assert getattr(error, "status_code", getattr(error, "code", None)) == 400, error
    else:
        raise AssertionError("not refused")


CELLS = [
    operation_and_download, operation_from_an_image, operation_that_fails,
    operation_that_is_filtered, operation_refused, interaction_with_video,
    interaction_that_fails, interaction_refused,
]

if __name__ == "__main__":
    cells.run(CELLS)
