"""OpenRouter's client for Python: chats, complete and streaming with usage, a tool."""

import os

from interrupted_streams import expect_errors
from openrouter import OpenRouter

client = OpenRouter(api_key=os.environ["API_KEY"], server_url=os.environ["GATEWAY_URL"] + "/v1", retry_config=None)
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Ur"]}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "forecast", "description": "The forecast", "parameters": PARAMETERS}}]


def user(content):
    return {"role": "user", "content": content}


for model in ["openai/gpt-5-mini", "anthropic/claude-haiku-4.5"]:
    chunks = list(client.chat.send(model=model, messages=[user("Hello [[sandbox tokens=3]]")], stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "every coin that"
    assert chunks[-1].usage.completion_tokens == 3
    messages = [user("Weather? [[sandbox tools=2]]")]
    called = client.chat.send(model=model, messages=messages, tools=TOOLS).choices[0].message
    assert len(called.tool_calls) == 2
    results = [{"role": "tool", "tool_call_id": call.id, "content": os.environ["TOOL_RESULT"]} for call in called.tool_calls]
    answered = client.chat.send(model=model, messages=[*messages, called, *results], tools=TOOLS)
    assert answered.choices[0].message.content.startswith("every coin")


def read(prompt):
    list(client.chat.send(model="openai/gpt-oss-120b", messages=[user(prompt)], tools=TOOLS, stream=True))


expect_errors(read)
