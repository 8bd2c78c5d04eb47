"""OpenAI's asynchronous client for Python: chats and Responses, complete and streaming, a tool."""

import asyncio
import os

from interrupted_streams import expect_errors
from openai import APIError, AsyncOpenAI

client = AsyncOpenAI(base_url=os.environ["GATEWAY_URL"] + "/v1", api_key=os.environ["API_KEY"], max_retries=0)
WORDS = "[[sandbox tokens=3]]"
SAID = "every coin that"
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Ur"]}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "forecast", "parameters": PARAMETERS, "strict": True}}


def user(content):
    return {"role": "user", "content": content}


async def chats(model):
    chat = await client.chat.completions.create(model=model, messages=[user(WORDS)])
    assert chat.choices[0].message.content == SAID
    chunks = await client.chat.completions.create(model=model, messages=[user(WORDS)], stream=True)
    text = [chunk.choices[0].delta.content or "" async for chunk in chunks if chunk.choices]
    assert "".join(text) == SAID
    messages = [user("Weather? [[sandbox tools=2]]")]
    for tools in (2, 0):
        async with client.chat.completions.stream(model=model, messages=messages, tools=[TOOL]) as stream:
            message = (await stream.get_final_completion()).choices[0].message
        calls = message.tool_calls or []
        assert [call.function.parsed_arguments for call in calls] == [{"city": "Ur"}] * tools
        messages.append(message)
        messages.extend({"role": "tool", "tool_call_id": call.id, "content": os.environ["TOOL_RESULT"]} for call in calls)
    assert messages[-1].content.startswith("every coin")


async def responses(model):
    assert (await client.responses.create(model=model, input=WORDS)).output_text == SAID
    async with client.responses.stream(model=model, input=WORDS) as stream:
        assert (await stream.get_final_response()).output_text == SAID


async def read(prompt):
    request = {"model": "openai/gpt-oss-120b", "messages": [user(prompt)], "tools": [TOOL]}
    async for _ in await client.chat.completions.create(**request, stream=True):
        pass


with asyncio.Runner() as runner:
    for name in ["openai/gpt-5-mini", "anthropic/claude-haiku-4.5"]:
        runner.run(chats(name))
        runner.run(responses(name))
    expect_errors(lambda prompt: runner.run(read(prompt)), APIError)
