"""OpenAI's client for Python over tinfoil-ehbp: complete, streaming, errors of the enclave and of the gateway."""

import json
import os

import httpx
from ehbp import Client
from ehbp.transport import EHBPTransport
from openai import APIStatusError, OpenAI

URL = os.environ["FRONT_URL"]
MODEL = "gpt-oss-120b"
HEADERS = {"X-Private-Model": f"private/{MODEL}"}
KEY = os.environ["API_KEY"]
SAID = "every coin that"

identity = Client.discover(URL).server_identity
http = httpx.Client(transport=EHBPTransport(identity))
options = {"base_url": URL + "/private/v1", "max_retries": 0, "http_client": http, "default_headers": HEADERS}
client = OpenAI(api_key=KEY, **options)


def user(content):
    return [{"role": "user", "content": content}]


whole = client.chat.completions.create(model=MODEL, messages=user("[[sandbox tokens=3]]"))
assert whole.choices[0].message.content == SAID, whole
stream = client.chat.completions.create(model=MODEL, messages=user("[[sandbox tokens=3]]"), stream=True)
parts = [chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices]
assert "".join(parts) == SAID, parts

try:
    client.chat.completions.create(model=MODEL, messages=user("[[sandbox fault=400]]"))
    raise AssertionError("the enclave did not reject the request")
except APIStatusError as error:
    assert error.status_code == 400, error

try:
    OpenAI(api_key="sk-none", **options).chat.completions.create(model=MODEL, messages=user("Hello"))
    raise AssertionError("the gateway did not reject the request")
except APIStatusError as error:
    assert error.status_code == 401, error

with Client.discover(URL) as plain:
    body = {"model": MODEL, "messages": user("[[sandbox tokens=3]]")}
    headers = {**HEADERS, "authorization": f"Bearer {KEY}"}
    answer = plain.post("/private/v1/chat/completions", json_body=body, headers=headers)
    assert answer.json()["choices"][0]["message"]["content"] == SAID, answer
print(json.dumps({"answered": 3}))
