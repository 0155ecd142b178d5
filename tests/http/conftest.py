"""Starts the real binary on the small model for the tests of this folder.

HOLMES_TEST_MODEL names the model file (tools/models/fetch_smollm2.py gets it); HOLMES_TEST_BINARY the program, by default the release build's.
"""

import os
import pathlib
import re
import signal
import subprocess
import threading

import openai
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
START_LIMIT_S = 120


class Holmes:
    """A running server: url, port, process."""

    def __init__(self, *args):
        binary = os.environ.get("HOLMES_TEST_BINARY", str(ROOT / "build/release/src/app/holmes"))
        model = os.environ.get("HOLMES_TEST_MODEL", "")
        if not os.path.exists(binary):
            pytest.skip(f"{binary} is not built")
        if not os.path.exists(model):
            pytest.skip("HOLMES_TEST_MODEL names no model file")
        # Every HOLMES_ variable is an option to the program; the tests' own are not its business.
        environment = {key: value for key, value in os.environ.items() if not key.startswith("HOLMES_")}
        self.process = subprocess.Popen(
            [binary, "serve", model, "--port", "0", *args], stdout=subprocess.PIPE, text=True, env=environment
        )
        watchdog = threading.Timer(START_LIMIT_S, self.process.kill)
        watchdog.start()
        try:
            self.url = self._wait_ready()
        finally:
            watchdog.cancel()
        self.port = int(self.url.rsplit(":", 1)[1])
        # What else it prints must not fill the pipe.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def _wait_ready(self):
        for line in self.process.stdout:
            found = re.match(r"holmes: ready on (http://\S+)", line)
            if found:
                return found.group(1)
        raise RuntimeError(f"holmes ended with {self.process.wait()} before it was ready")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


@pytest.fixture(scope="session")
def holmes():
    server = Holmes()
    yield server
    assert server.stop() == 0


@pytest.fixture
def start_holmes():
    """Starts servers of one test's own, with arguments."""
    servers = []

    def start(*args):
        servers.append(Holmes(*args))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="session")
def client(holmes):
    with openai.OpenAI(base_url=holmes.url + "/v1", api_key="none", max_retries=0, timeout=120) as one:
        yield one


@pytest.fixture(scope="session")
def model(client):
    return client.models.list().data[0].id
