"""LiteLLM as a client: chats, Responses, Messages, tools, embeddings."""

import os

import litellm
from interrupted_streams import expect_errors

litellm.telemetry = False
URL = os.environ["GATEWAY_URL"] + "/v1"
options = {"api_base": URL, "api_key": os.environ["API_KEY"], "num_retries": 0}
WORDS = [{"role": "user", "content": "Hello [[sandbox tokens=3]]"}]
SAID = "every coin that"
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Ur"]}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "forecast", "description": "The forecast", "parameters": PARAMETERS}}]

for name in ["openai/gpt-5-mini", "anthropic/claude-haiku-4.5"]:
    # LiteLLM's prefix selects the protocol; the rest is the model id of the gateway.
    model = "openai/" + name
    whole = litellm.completion(model=model, messages=WORDS, **options)
    assert (whole.choices[0].message.content, whole.usage.completion_tokens) == (SAID, 3)
    chunks = list(litellm.completion(model=model, messages=WORDS, stream=True, stream_options={"include_usage": True}, **options))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == SAID
    messages = [{"role": "user", "content": "Weather? [[sandbox tools=2]]"}]
    called = litellm.completion(model=model, messages=messages, tools=TOOLS, **options).choices[0].message
    assert len(called.tool_calls) == 2
    results = [{"role": "tool", "tool_call_id": call.id, "content": os.environ["TOOL_RESULT"]} for call in called.tool_calls]
    answered = litellm.completion(model=model, messages=[*messages, called, *results], tools=TOOLS, **options)
    assert answered.choices[0].message.content.startswith("every coin")
    response = litellm.responses(model=model, input="Hello [[sandbox tokens=3]]", **options)
    assert response.output[-1].content[0].text == SAID

messages = litellm.completion(
    model="anthropic/anthropic/claude-haiku-4.5",
    messages=WORDS,
    max_tokens=2000,
    **{**options, "api_base": os.environ["GATEWAY_URL"]},
)
assert messages.choices[0].message.content == SAID

embedded = litellm.embedding(model="openai/openai/text-embedding-3-small", input=["one"], **options)
assert len(embedded.data[0]["embedding"]) == 1536


def read(prompt):
    request = {"model": "openai/openai/gpt-oss-120b", "messages": [{"role": "user", "content": prompt}], "tools": TOOLS}
    list(litellm.completion(**request, stream=True, max_retries=0, **options))


expect_errors(read)
