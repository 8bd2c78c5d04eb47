"""Anthropic's client for Python with models of Anthropic and another provider: sync, async, tools, token counting."""

import asyncio
import os

from anthropic import Anthropic, AsyncAnthropic
from interrupted_streams import expect_errors

options = {"base_url": os.environ["GATEWAY_URL"], "api_key": os.environ["API_KEY"], "max_retries": 0}
TOOL_RESULT = os.environ["TOOL_RESULT"]
client = Anthropic(**options)
WORDS = "Hello [[sandbox tokens=3]]"
SAID = "every coin that"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Ur"]}}, "required": ["city"]}
TOOLS = [{"name": "forecast", "description": "The forecast", "input_schema": SCHEMA}]


def asked(model, content):
    return {"model": model, "max_tokens": 2000, "messages": [{"role": "user", "content": content}]}


async def asynchronously(model):
    async with AsyncAnthropic(**options) as client:
        async with client.messages.stream(**asked(model, WORDS)) as stream:
            assert "".join([text async for text in stream.text_stream]) == SAID


for model in ["anthropic/claude-haiku-4.5", "openai/gpt-5-mini"]:
    whole = client.messages.create(**asked(model, WORDS))
    assert (whole.content[0].text, whole.usage.output_tokens) == (SAID, 3)
    with client.messages.stream(**asked(model, WORDS)) as stream:
        assert "".join(stream.text_stream) == SAID
        assert stream.get_final_message().usage.output_tokens == 3
    asyncio.run(asynchronously(model))
    question = asked(model, "Weather? [[sandbox tools=2]]")
    called = client.messages.create(**question, tools=TOOLS)
    calls = [block for block in called.content if block.type == "tool_use"]
    assert (called.stop_reason, [call.input for call in calls]) == ("tool_use", [{"city": "Ur"}] * 2)
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": TOOL_RESULT} for call in calls]
    turns = [{"role": "assistant", "content": called.content}, {"role": "user", "content": results}]
    question["messages"].extend(turns)
    with client.messages.stream(**question, tools=TOOLS) as stream:
        assert stream.get_final_text().startswith("every coin")
    counted = client.messages.count_tokens(model=model, messages=asked(model, WORDS)["messages"])
    assert counted.input_tokens > 0


def read(prompt):
    with client.messages.stream(**asked("openai/gpt-oss-120b", prompt), tools=TOOLS) as stream:
        stream.get_final_message()


expect_errors(read)
