"""What no client library would send, and ends that come early, against the real binary."""

import json
import signal
import socket
import urllib.error
import urllib.request

import pytest


def exchange(port, data, shut=False):
    """Sends bytes, reads until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        try:
            sock.sendall(data)
            if shut:
                sock.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass
        out = b""
        while piece := sock.recv(65536):
            out += piece
        return out


def post(path, body, more=b""):
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return head.encode() + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


def chat(max_tokens, **more):
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": max_tokens, "temperature": 0, **more}
    return post("/v1/chat/completions", json.dumps(body).encode())


def status(answer):
    return int(answer.split(b" ", 2)[1])


CHUNKED = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "data, expected",
    [
        (b"\x16\x03\x01\x02\x00\x01\x00 TLS to a plain port\r\n\r\n", 400),
        (b"GET /v1/models\r\n\r\n", 400),
        (b"GET /v1/models HTTP/1.1\r\n\r\n", 400),
        (post("/v1/completions", b"{"), 400),
        (post("/v1/completions", b'{"prompt": "\xff\xfe"}'), 400),
        (post("/v1/completions", b'{"prompt":' + b"[" * 100_000), 400),
        (post("/v1/completions", b'{"prompt": ""}'), 400),
        (post("/v1/completions", b'{"prompt": "a", "temperature": NaN}'), 400),
        (CHUNKED + b"5\r\nab\r\n0\r\n\r\n", 400),
        (CHUNKED + b"zz\r\nab\r\n0\r\n\r\n", 400),
        (post("/v1/completions", b"x" * 40_000_000), 413),
        (post("/v1/completions", b"{}").replace(b"application/json", b"text/plain"), 415),
        (b"GET /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 405),
        (b"GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 100_000 + b"\r\n\r\n", 431),
    ],
    ids=lambda value: repr(value[:60]) if isinstance(value, bytes) else str(value),
)
def test_bad_input_is_refused_and_the_server_goes_on(holmes, data, expected):
    answer = exchange(holmes.port, data)
    assert status(answer) == expected
    error = json.loads(answer.split(b"\r\n\r\n", 1)[1])["error"]
    assert error["message"] and error["type"]
    assert status(exchange(holmes.port, chat(2))) == 200


def test_a_request_cut_at_any_byte_is_the_same_request(holmes):
    request = chat(1)
    for cut in range(0, len(request), 7):
        with socket.create_connection(("127.0.0.1", holmes.port), timeout=60) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.sendall(request[:cut])
            sock.sendall(request[cut:])
            assert sock.recv(16).startswith(b"HTTP/1.1 200")


def test_health_ready_metrics(holmes):
    for path in ("/health", "/ready", "/metrics"):
        assert urllib.request.urlopen(holmes.url + path).status == 200


def test_sigterm_lets_streams_finish(start_holmes):
    server = start_holmes()
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
        sock.sendall(chat(60, stream=True, ignore_eos=True))
        out = sock.recv(65536)
        server.process.send_signal(signal.SIGTERM)
        while piece := sock.recv(65536):
            out += piece
    assert b'"finish_reason":"length"' in out
    assert b"data: [DONE]" in out
    assert server.process.wait(timeout=60) == 0


def test_a_taken_port_is_told(start_holmes):
    server = start_holmes()
    with pytest.raises(RuntimeError, match="before it was ready"):
        start_holmes("--port", str(server.port))
