"""An upstream that accepts only requests whose signature equals that of botocore, and a reader of binary streams.

Converse requests must also have the shapes in botocore's description of the service. The upstream's token endpoint
issues tokens for assertions that equal those of google-auth, and the upstream accepts requests with such a token.

`check` serves until it is stopped, and prints its address. `decode URL` reads a stream of the simulated upstream.
"""

import json
import secrets
import struct
import sys
import time
import urllib.request
import zlib
from base64 import b64decode, b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.eventstream import EventStreamBuffer
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.parsers import EventStreamJSONParser
from botocore.validate import ParamValidator
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth import jwt
from google.oauth2.service_account import Credentials as ServiceAccount

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
# The session token and the region of each key.
KEYS = {
    "AKIDEXAMPLE": (None, "us-east-1"),
    "ASIDEXAMPLE": ("FwoGZXIvYXdzE/example+token==", "eu-central-1"),
}
SERVICE = ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"), "bedrock-runtime")
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "checked by botocore"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 4},
}


# The issued tokens.
TOKENS = set()
SCOPE = "https://www.googleapis.com/auth/cloud-platform"


def service_account(address: str) -> dict:
    """A key file as the vendor's console creates it."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return {
        "type": "service_account",
        "project_id": "acme",
        "private_key_id": secrets.token_hex(20),
        "private_key": key.private_bytes(encoding, form, serialization.NoEncryption()).decode(),
        "client_email": "gateway@acme.iam.gserviceaccount.com",
        "token_uri": f"http://{address}/token",
    }


def wrong_assertion(form: dict, account: dict):
    """What is wrong with a token request, or `None`. The assertion must have the content and the signature that
    google-auth would give it."""
    if form.get("grant_type") != ["urn:ietf:params:oauth:grant-type:jwt-bearer"] or len(form) != 2:
        return f"members {sorted(form)}"
    (assertion,) = form["assertion"]
    credentials = ServiceAccount.from_service_account_info(account, scopes=[SCOPE])
    own = jwt._unverified_decode(credentials._make_authorization_grant_assertion())
    own_header, own_claims, _, _ = own
    header, claims, signed, signature = jwt._unverified_decode(assertion)
    if header != own_header:
        return f"header {header}"
    if signature != credentials.signer.sign(signed):
        return "signature"
    lifetime = claims["exp"] - claims["iat"]
    if abs(claims["iat"] - time.time()) > 60 or lifetime != own_claims["exp"] - own_claims["iat"]:
        return f"a lifetime of {lifetime} s"
    times = {name: claims[name] for name in ("iat", "exp")}
    return None if claims == {**own_claims, **times} else f"claims {claims}"


def fault(handler: BaseHTTPRequestHandler, body: bytes):
    """What is wrong with the signature or the token of a request, or `None`."""
    if handler.path.startswith("/v1/projects/"):
        kind, _, token = handler.headers["authorization"].partition(" ")
        return None if kind == "Bearer" and token in TOKENS else "token"
    headers = {name.lower(): value for name, value in handler.headers.items()}
    algorithm, _, rest = headers["authorization"].partition(" ")
    claim = dict(part.strip().split("=", 1) for part in rest.split(","))
    key, _, region, service, _ = claim["Credential"].split("/")
    token, own_region = KEYS[key]
    wanted = "bedrock-mantle" if handler.path.startswith("/anthropic/") else "bedrock"
    if (algorithm, region, service) != ("AWS4-HMAC-SHA256", own_region, wanted):
        return f"scope {claim['Credential']}"
    signed = claim["SignedHeaders"].split(";")
    required = ["content-type", "host", "x-amz-date"] + (["x-amz-security-token"] if token else [])
    if signed != required or headers.get("x-amz-security-token") != token:
        return f"signed headers {signed}"
    request = AWSRequest(
        method=handler.command,
        url=f"http://{headers['host']}{handler.path}",
        data=body,
        headers={name: headers[name] for name in signed},
    )
    request.context["timestamp"] = headers["x-amz-date"]
    signer = SigV4Auth(Credentials(key, SECRET, token), service, region)
    canonical = signer.canonical_request(request)
    signature = signer.signature(signer.string_to_sign(request, canonical), request)
    return None if signature == claim["Signature"] else f"signature, for {canonical[:500]!r}"


def wrong_form(path: str, body: dict):
    """What is wrong with the body of a request, or `None`. Only below `/anthropic/` it contains the model."""
    if path.startswith("/anthropic/"):
        return None if "model" in body else "no model"
    if path.startswith("/v1/projects/"):
        is_right = "model" not in body and body.get("anthropic_version") == "vertex-2023-10-16"
        return None if is_right else f"members {sorted(body)}"
    if "/converse" in path:
        return wrong_shape("ConverseStream" if path.endswith("-stream") else "Converse", body)
    if "model" in body or "stream" in body or body.get("anthropic_version") != "bedrock-2023-05-31":
        return f"members {sorted(body)}"
    return None if body.get("anthropic_beta") == ["one-2026", "two-2026"] else "betas"


def wrong_shape(operation: str, body: dict):
    """How a Converse request differs from the description of the service, or `None`."""
    shape = SERVICE.operation_model(operation).input_shape
    report = ParamValidator().validate({"modelId": "m", **body}, shape)
    if report.has_errors():
        return report.generate_report()
    kinds = {kind for turn in body["messages"] for block in turn["content"] for kind in block}
    wanted = {"text", "toolUse", "toolResult", "reasoningContent", "image", "document", "cachePoint"}
    return None if kinds == wanted else f"blocks {sorted(kinds)}"


class Checker(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/token":
            return self.give_token(parse_qs(body.decode(), keep_blank_values=True))
        request = json.loads(body)
        found = fault(self, body) or wrong_form(self.path, request)
        if found:
            print(json.dumps({"fault": found, "path": unquote(urlsplit(self.path).path)}), flush=True)
            self.answer(403, "application/json", json.dumps({"message": found}).encode())
        elif self.path.endswith("/invoke-with-response-stream"):
            frames = b"".join(map(chunk, events()))
            self.answer(200, "application/vnd.amazon.eventstream", frames)
        elif self.path.endswith("/converse-stream"):
            frames = b"".join(frame(name, {**event, "p": "abc"}) for name, event in converse_events())
            self.answer(200, "application/vnd.amazon.eventstream", frames)
        elif self.path.endswith("/converse"):
            self.answer(200, "application/json", json.dumps(converse_answer()).encode())
        elif request.get("stream"):
            told = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events())
            self.answer(200, "text/event-stream", told.encode())
        else:
            self.answer(200, "application/json", json.dumps(MESSAGE).encode())

    def give_token(self, form: dict):
        found = wrong_assertion(form, self.server.account)
        if found:
            print(json.dumps({"fault": found, "path": "/token"}), flush=True)
            return self.answer(400, "application/json", json.dumps({"error": "invalid_grant"}).encode())
        token = "ya29." + secrets.token_urlsafe(32)
        TOKENS.add(token)
        told = {"access_token": token, "expires_in": 3599, "token_type": "Bearer"}
        self.answer(200, "application/json", json.dumps(told).encode())

    def answer(self, status: int, kind: str, body: bytes):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def events():
    text = MESSAGE["content"][0]["text"]
    yield {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    yield {"type": "content_block_stop", "index": 0}
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 4}}
    yield {"type": "message_stop"}


def converse_usage() -> dict:
    return {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}


def converse_answer() -> dict:
    return {
        "output": {"message": {"role": "assistant", "content": [{"text": MESSAGE["content"][0]["text"]}]}},
        "stopReason": "end_turn",
        "usage": converse_usage(),
        "metrics": {"latencyMs": 5},
    }


def converse_events():
    yield "messageStart", {"role": "assistant"}
    yield "contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": MESSAGE["content"][0]["text"]}}
    yield "contentBlockStop", {"contentBlockIndex": 0}
    yield "messageStop", {"stopReason": "end_turn"}
    yield "metadata", {"usage": converse_usage(), "metrics": {"latencyMs": 5}}


def chunk(event: dict) -> bytes:
    return frame("chunk", {"bytes": b64encode(json.dumps(event).encode()).decode(), "p": "abc"})


def frame(name: str, event: dict) -> bytes:
    payload = json.dumps(event).encode()
    headers = {
        ":event-type": name,
        ":content-type": "application/json",
        ":message-type": "event",
    }
    written = b"".join(
        struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", 7, len(value)) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", len(written) + len(payload) + 16, len(written))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + written + payload
    return message + struct.pack(">I", zlib.crc32(message))


def check():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Checker)
    address = f"127.0.0.1:{server.server_port}"
    server.account = service_account(address)
    print(json.dumps({"address": address, "account": server.account}), flush=True)
    server.serve_forever()


def decode(url: str):
    """Reads a stream of the simulated upstream with botocore's decoder."""
    body = {
        "anthropic_version": "bedrock-2023-05-31",
        "max_tokens": 50,
        "messages": [{"role": "user", "content": "Say hello."}],
    }
    types = []
    for message in streamed(url, "invoke-with-response-stream", body):
        assert message.headers[":event-type"] == "chunk", message.headers
        inside = json.loads(message.payload)["bytes"]
        types.append(json.loads(b64decode(inside))["type"])
    assert types[0] == "message_start" and types[-1] == "message_stop", types
    assert "content_block_delta" in types, types
    decode_converse(url)


def decode_converse(url: str):
    """Like `decode`, for Converse, whose events have shapes."""
    body = {"messages": [{"role": "user", "content": [{"text": "Say hello."}]}]}
    shape = SERVICE.operation_model("ConverseStream").output_shape.members["stream"]
    parser = EventStreamJSONParser()
    names = []
    for message in streamed(url, "converse-stream", body):
        event = parser.parse(message.to_response_dict(), shape)
        names.extend(event)
        if "metadata" in event:
            assert event["metadata"]["usage"]["outputTokens"] > 0, event
    assert names[0] == "messageStart" and names[-2:] == ["messageStop", "metadata"], names
    assert "contentBlockDelta" in names, names


def streamed(url: str, action: str, body: dict) -> EventStreamBuffer:
    request = urllib.request.Request(
        f"{url}/model/us.anthropic.sim-chat-v1%3A0/{action}",
        data=json.dumps(body).encode(),
        headers={"authorization": "Bearer key", "content-type": "application/json"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    buffer = EventStreamBuffer()
    with opener.open(request, timeout=30) as answer:
        buffer.add_data(answer.read())
    return buffer


if __name__ == "__main__":
    if sys.argv[1] == "check":
        check()
    else:
        decode(sys.argv[2])
