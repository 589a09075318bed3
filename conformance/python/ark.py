"""Videos through the Ark runtime: creates, polls, lists and deletes content tasks. Each outcome is a line of JSON."""

import os
import struct
import time
import urllib.request

from volcenginesdkarkruntime import Ark
from volcenginesdkarkruntime._exceptions import ArkAPIStatusError, ArkNotFoundError

import cells

URL = os.environ["TOLLGATE_URL"]
SECONDS_MAX = 60
client = Ark(base_url=f"{URL}/v1", api_key=os.environ["TOLLGATE_KEY"], timeout=60)
tasks = client.content_generation.tasks
IMAGE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def created(text, **options):
    content = [{"type": "text", "text": text}]
    return tasks.create(model="maker/content", content=content, **options).id


def wait_for_state(task, *states):
    """Waits until the task has one of these states, and returns it."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        told = tasks.get(task_id=task)
        if told.status in states:
            return told
        time.sleep(0.1)
    raise AssertionError(f"it does not come to {states}: {told}")


def fetched(url):
    """Fetches the path of a public URL from the gateway's own address."""
    path = url.split("/", 3)[3]
    with urllib.request.urlopen(f"{URL}/{path}") as answer:
        return answer.headers["content-type"], answer.read()


def refused(call, status, code):
    try:
        call()
    except ArkAPIStatusError as error:
        assert error.status_code == status, error
        assert error.body["code"] == code, error.body
    else:
        raise AssertionError("it was not refused")


def a_film_and_its_last_frame():
    task = created("a boat", duration=4, resolution="720p", seed=11, return_last_frame=True)
    told = wait_for_state(task, "succeeded", "failed")
    assert (told.id, told.status, told.model) == (task, "succeeded", "maker/content"), told
    assert told.usage.completion_tokens == 1280 * 720 * 97 // 1024, told.usage
    assert (told.resolution, told.duration, told.seed) == ("720p", 4, 11), told
    kind, film = fetched(told.content.video_url)
    assert kind == "video/mp4" and film[4:8] == b"ftyp", (kind, film[:16])
    at = film.index(b"mvhd") + 4
    scale, length = struct.unpack(">II", film[at + 12 : at + 20])
    assert length / scale == 4, (length, scale)
    kind, frame = fetched(told.content.last_frame_url)
    assert kind == "image/png" and frame.startswith(b"\x89PNG"), (kind, frame[:8])


def frames_of_a_film():
    frames = [
        {"type": "image_url", "image_url": {"url": IMAGE}, "role": role}
        for role in ("first_frame", "last_frame")
    ]
    content = [{"type": "text", "text": "a boat"}, *frames]
    task = tasks.create(model="maker/content", content=content, ratio="16:9", duration=5).id
    assert wait_for_state(task, "succeeded", "failed").status == "succeeded"


def a_task_that_fails():
    told = wait_for_state(created("[refuse]"), "succeeded", "failed")
    assert told.status == "failed", told
    assert "SensitiveContentDetected" in told.error.code, told.error


def a_list_of_ones_own():
    task = created("[queue]")
    listed = tasks.list(page_num=1, page_size=10, status="queued", task_ids=[task])
    assert [item.id for item in listed.items] == [task] and listed.total == 1, listed
    assert tasks.list(status="queued", model="maker/other").total == 0


def a_task_called_off():
    task = created("[queue]")
    tasks.delete(task_id=task)
    assert tasks.get(task_id=task).status == "cancelled"
    refused(lambda: tasks.delete(task_id=task), 409, "task_cancelled")


def a_task_that_runs_is_kept():
    task = created("[run]")
    wait_for_state(task, "running")
    refused(lambda: tasks.delete(task_id=task), 409, "task_running")


def an_ended_task_is_removed():
    task = created("[fail]")
    wait_for_state(task, "failed")
    tasks.delete(task_id=task)
    try:
        tasks.get(task_id=task)
    except ArkNotFoundError as error:
        assert error.body["code"] == "task_not_found", error.body
    else:
        raise AssertionError("it is still there")


def what_is_not_taken():
    refused(lambda: created("x", duration=99), 400, "invalid_request")
    refused(lambda: created("x", priority=3), 400, "unsupported_parameter")
    refused(lambda: created("x", service_tier="flex"), 400, "service_tier_not_supported")


CELLS = [
    a_film_and_its_last_frame, frames_of_a_film, a_task_that_fails, a_list_of_ones_own,
    a_task_called_off, a_task_that_runs_is_kept, an_ended_task_is_removed, what_is_not_taken,
]

if __name__ == "__main__":
    cells.run(CELLS)
