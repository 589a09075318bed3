"""Receives telemetry from a collector, and prints it as lines of JSON. It also accepts metrics as JSON from the
gateway itself.

OpenTelemetry's own Python packages decode it. The first line has the address. Each further line has a span, a data
point, or what is wrong with a request.
"""

import gzip
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

LOCK = Lock()


def write(line: dict):
    with LOCK:
        print(json.dumps(line), flush=True)


def plain(value):
    """The value of an attribute."""
    kind = value.WhichOneof("value")
    return None if kind is None else getattr(value, kind)


def attributes(items) -> dict:
    named = {item.key: plain(item.value) for item in items}
    if len(named) != len(items):
        raise ValueError("an attribute is told twice")
    return named


def spans(body: bytes):
    request = ExportTraceServiceRequest.FromString(body)
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield {
                    "span": span.name,
                    "resource": attributes(resource.resource.attributes),
                    "scope": scope.scope.name,
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "kind": span.kind,
                    "status": span.status.code,
                    "begins": span.start_time_unix_nano,
                    "ends": span.end_time_unix_nano,
                    "attributes": attributes(span.attributes),
                    "events": [
                        {"name": event.name, "at": event.time_unix_nano} | attributes(event.attributes)
                        for event in span.events
                    ],
                }


def points(body: bytes):
    if body.startswith(b"{"):
        request = json_format.Parse(body, ExportMetricsServiceRequest())
    else:
        request = ExportMetricsServiceRequest.FromString(body)
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                data = getattr(metric, kind)
                for point in data.data_points:
                    told = {
                        "metric": metric.name,
                        "kind": kind,
                        "unit": metric.unit,
                        "resource": attributes(resource.resource.attributes),
                        "attributes": attributes(point.attributes),
                    }
                    if kind == "histogram":
                        told |= {
                            "temporality": data.aggregation_temporality,
                            "count": point.count,
                            "sum": point.sum,
                            "bounds": list(point.explicit_bounds),
                            "counts": list(point.bucket_counts),
                        }
                    else:
                        told["value"] = getattr(point, point.WhichOneof("value"))
                    if kind == "sum":
                        told["temporality"] = data.aggregation_temporality
                        told["is_monotonic"] = data.is_monotonic
                    yield told


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        read, answer = {
            "/v1/traces": (spans, ExportTraceServiceResponse()),
            "/v1/metrics": (points, ExportMetricsServiceResponse()),
        }[self.path]
        try:
            for line in read(body):
                write(line)
            status = 200
        except (ValueError, json_format.ParseError) as error:
            write({"fault": str(error)})
            status = 400
        told = answer.SerializeToString()
        self.send_response(status)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    write({"address": f"127.0.0.1:{server.server_port}"})
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)
