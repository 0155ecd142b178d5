"""What a server says before its model is there, how it ends then, and what it refuses when it is full."""

import concurrent.futures
import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request

import conftest
import pytest


def binary_and_model():
    binary = os.environ.get("HOLMES_TEST_BINARY", str(conftest.ROOT / "build/release/src/app/holmes"))
    model = os.environ.get("HOLMES_TEST_MODEL", "")
    if not os.path.exists(binary):
        pytest.skip(f"{binary} is not built")
    if not os.path.exists(model):
        pytest.skip("HOLMES_TEST_MODEL names no model file")
    return binary, model


def get(url):
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def run(*args):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HOLMES_")}
    return subprocess.run(args, capture_output=True, text=True, timeout=300, env=environment)


def listening(process):
    """The port, once it is told."""
    for line in process.stderr:
        found = re.search(r"listening on port (\d+)", line)
        if found:
            return int(found.group(1))
    raise RuntimeError("the port was never told")


def test_a_taken_port_is_told_before_the_model_is_looked_at(holmes):
    binary, _ = binary_and_model()
    done = run(binary, "serve", "/no/such/model.gguf", "--port", str(holmes.port))
    assert done.returncode == 1
    assert str(holmes.port) in done.stderr
    assert "model.gguf" not in done.stderr


def test_sigterm_while_loading_ends_at_once():
    binary, model = binary_and_model()
    process = subprocess.Popen([binary, "serve", model, "--port", "0"], stderr=subprocess.PIPE, text=True)
    listening(process)
    process.send_signal(signal.SIGTERM)
    # Ended by the signal while it loads, or drained cleanly if it was ready already.
    assert process.wait(timeout=60) in (0, 128 + signal.SIGTERM)
    process.stderr.close()


def test_the_first_request_finds_a_warm_engine(start_holmes):
    server = start_holmes()
    assert get(server.url + "/ready") == 200
    text = urllib.request.urlopen(server.url + "/metrics").read().decode()
    generated = next(line for line in text.splitlines() if line.startswith("holmes_generation_tokens_total"))
    assert float(generated.split()[1]) >= 4


def ask(url, headers=None, **more):
    body = {"messages": [{"role": "user", "content": "hi"}], "temperature": 0, "ignore_eos": True, **more}
    request = urllib.request.Request(
        url + "/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", **(headers or {})},
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, dict(answer.headers), json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), json.load(error)


def test_a_full_queue_is_429_and_those_in_it_are_answered(start_holmes):
    server = start_holmes("--max-sequences", "1", "--max-queued-requests", "1")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ask(server.url, max_tokens=60), range(8)))
    assert {status for status, _, _ in answers} == {200, 429}
    for status, headers, body in answers:
        if status == 429:
            assert int(headers["Retry-After"]) >= 1
            assert body["error"]["code"] == "overloaded"


def test_a_deadline_ends_what_runs_and_what_waits(start_holmes):
    server = start_holmes("--max-sequences", "1", "--request-timeout", "1")
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda _: ask(server.url, max_tokens=8000), range(3)))
    assert [status for status, _, _ in answers] == [504] * 3
    assert all(body["error"]["code"] == "deadline_exceeded" for _, _, body in answers)
    status, _, body = ask(server.url, {"x-request-timeout": "0.001"}, max_tokens=8000)
    assert status == 504
    assert ask(server.url, max_tokens=1)[0] == 200


@pytest.mark.parametrize("more", [[], ["--rate", "50"]], ids=["closed", "poisson"])
def test_bench_measures_a_running_server(holmes, more):
    binary, _ = binary_and_model()
    done = run(
        binary, "bench", "--url", holmes.url + "/v1", "--requests", "4", "--concurrency", "2",
        "--prompt-words", "10", "--output-tokens", "8", "--json", *more,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert rows["requests"]["succeeded"] == 4 and rows["requests"]["failed"] == 0
    assert rows["requests"]["seconds"] > 0
    assert rows["throughput"]["tokens_per_s"] >= rows["throughput"]["requests_per_s"] > 0
    assert rows["throughput"]["tokens_per_s"] <= 8 * rows["throughput"]["requests_per_s"] * 1.0001
    for name in ("ttft_ms", "tpot_ms"):
        assert 0 < rows[name]["p50"] <= rows[name]["p95"] <= rows[name]["p99"]
        assert rows[name]["p99"] <= rows["requests"]["seconds"] * 1000


def test_bench_counts_answers_of_one_token(holmes):
    """Some of them have no text: the end token, or a part of a character."""
    binary, _ = binary_and_model()
    done = run(
        binary, "bench", "--url", holmes.url + "/v1", "--requests", "14", "--concurrency", "4",
        "--prompt-words", "10", "--output-tokens", "1", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert rows["requests"]["succeeded"] == 14 and rows["requests"]["failed"] == 0
    assert rows["ttft_ms"]["p50"] > 0


def test_bench_tells_of_a_server_that_is_not_there():
    binary, _ = binary_and_model()
    done = run(binary, "bench", "--url", "http://127.0.0.1:1", "--requests", "2")
    assert done.returncode != 0
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1
    assert "127.0.0.1:1" in lines[0]


def test_a_request_that_does_not_say_is_drawn_as_the_server_was_told(start_holmes):
    server = start_holmes("--temperature", "0", "--top-p", "0.9")

    def answer(**fields):
        body = {"model": "model", "prompt": "Once upon a time", "max_tokens": 12, **fields}
        request = urllib.request.Request(
            server.url + "/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)["choices"][0]["text"]

    model = json.load(urllib.request.urlopen(server.url + "/v1/models"))["data"][0]["id"]
    greedy = answer(model=model, temperature=0)
    assert {answer(model=model, seed=seed) for seed in range(3)} == {greedy}
    assert len({answer(model=model, seed=seed, temperature=1.5, top_p=1) for seed in range(3)} | {greedy}) > 1
