"""Speech, transcripts and sessions, through openai and websockets. Each outcome is a line of JSON."""

import base64
import io
import json
import os

import openai
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

import cells

URL = os.environ["TOLLGATE_URL"]
KEY = os.environ["TOLLGATE_KEY"]
TIMEOUT_SECONDS = 60
MODEL = "maker/voice"
# A second of 16-bit samples at 24 kHz.
SECOND = b"\0" * 48000

client = openai.OpenAI(base_url=f"{URL}/v1", api_key=KEY, timeout=TIMEOUT_SECONDS, max_retries=0)


def socket(target):
    return connect(
        URL.replace("http", "ws", 1) + target,
        additional_headers={"authorization": f"Bearer {KEY}"},
        open_timeout=TIMEOUT_SECONDS,
    )


def until(events, kind):
    """All events up to the first of a type."""
    seen = []
    for event in events:
        seen.append(event)
        assert event.type != "error" or kind == "error", event
        if event.type == kind:
            return seen
    raise AssertionError(f"no {kind}")


def told(connection, kind):
    """The next event of a type on a plain socket."""
    while True:
        event = json.loads(connection.recv(timeout=TIMEOUT_SECONDS))
        if event["type"] == kind:
            return event


def say(connection, **event):
    connection.send(json.dumps(event))


def speech():
    answer = client.audio.speech.create(
        model=MODEL, input="Hello", voice="eve", response_format="wav"
    )
    assert answer.content.startswith(b"RIFF")
    return answer.content


def transcription():
    file = io.BytesIO(speech())
    file.name = "hello.wav"
    answer = client.audio.transcriptions.create(model=MODEL, file=file)
    assert answer.text


def realtime_text():
    with client.realtime.connect(model=MODEL) as connection:
        created = until(connection, "session.created")[-1]
        assert created.session.model == MODEL
        connection.session.update(
            session={
                "type": "realtime",
                "model": MODEL,
                "output_modalities": ["text"],
                "audio": {"input": {"turn_detection": None}},
            }
        )
        assert until(connection, "session.updated")[-1].session.model == MODEL
        for words in ("Hi", "Once more"):
            content = [{"type": "input_text", "text": words}]
            connection.conversation.item.create(
                item={"type": "message", "role": "user", "content": content}
            )
            connection.response.create()
            events = until(connection, "response.done")
            deltas = [it.delta for it in events if it.type == "response.output_text.delta"]
            assert words in "".join(deltas), deltas
            assert events[-1].response.status == "completed"


def realtime_audio():
    with client.realtime.connect(model=MODEL) as connection:
        until(connection, "session.created")
        # With voice activity detection, a second of speech is a turn.
        connection.input_audio_buffer.append(audio=base64.b64encode(SECOND).decode())
        events = until(connection, "response.done")
        kinds = [event.type for event in events]
        assert "input_audio_buffer.speech_started" in kinds, kinds
        sound = [it.delta for it in events if it.type == "response.output_audio.delta"]
        assert sum(len(base64.b64decode(piece)) for piece in sound) > 10_000
        transcripts = [it for it in events if it.type == "response.output_audio_transcript.done"]
        assert transcripts[0].transcript


def realtime_functions():
    tool = {"type": "function", "name": "weather", "parameters": {"type": "object"}}
    with client.realtime.connect(model=MODEL) as connection:
        connection.session.update(session={"type": "realtime", "tools": [tool]})
        content = [{"type": "input_text", "text": "How is the weather?"}]
        connection.conversation.item.create(
            item={"type": "message", "role": "user", "content": content}
        )
        connection.response.create()
        call = until(connection, "response.function_call_arguments.done")[-1]
        assert json.loads(call.arguments)
        connection.conversation.item.create(
            item={"type": "function_call_output", "call_id": call.call_id, "output": "fair"}
        )


def realtime_refusals():
    with client.realtime.connect(model=MODEL) as connection:
        tools = [{"type": "file_search", "vector_store_ids": ["x"]}]
        connection.send({"type": "session.update", "event_id": "mine", "session": {"tools": tools}})
        error = until(connection, "error")[-1].error
        assert (error.code, error.event_id) == ("stateful_not_supported", "mine"), error
        # The session continues.
        connection.session.update(session={"type": "realtime"})
        until(connection, "session.updated")
    for query in ({"call_id": "c"}, {"provider": "x"}):
        try:
            with client.realtime.connect(model=MODEL, extra_query=query, max_retries=0):
                pass
        except InvalidStatus as error:
            answer = json.loads(error.response.body)
            assert error.response.status_code == 400 and answer["error"]["code"], answer
        else:
            raise AssertionError(f"not refused: {query}")


def streaming_speech():
    with socket(f"/v1/tts?model={MODEL}&language=en&codec=pcm") as connection:
        for words in ("Hello, ", "world."):
            say(connection, type="text.delta", delta=words)
            assert base64.b64decode(told(connection, "audio.delta")["delta"])
        say(connection, type="text.done")
        told(connection, "audio.done")


def streaming_transcript():
    with socket(f"/v1/stt?model={MODEL}&encoding=pcm&sample_rate=24000") as connection:
        told(connection, "transcript.created")
        for at in range(0, len(SECOND), 960):
            connection.send(SECOND[at : at + 960])
        say(connection, type="audio.done")
        assert told(connection, "transcript.partial")["is_final"]
        assert told(connection, "transcript.done")["duration"] == 1


CELLS = [
    speech, transcription, realtime_text, realtime_audio, realtime_functions, realtime_refusals,
    streaming_speech, streaming_transcript,
]

if __name__ == "__main__":
    cells.run(CELLS)
