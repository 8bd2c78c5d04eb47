"""OpenAI's client for Python: chats and Responses with their helpers, embeddings."""

import os

from interrupted_streams import expect_errors
from openai import APIError, OpenAI
from pydantic import BaseModel

BASE_URL = os.environ["GATEWAY_URL"] + "/v1"
TOOL_RESULT = os.environ["TOOL_RESULT"]
MODELS = ["openai/gpt-5-mini", "anthropic/claude-haiku-4.5"]
WORDS = "[[sandbox tokens=3]]"
SAID = "every coin that"

client = OpenAI(base_url=BASE_URL, api_key=os.environ["API_KEY"], max_retries=0)


class Place(BaseModel):
    city: str
    days: int


PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Ur"]}},
    "required": ["city"],
    "additionalProperties": False,
}
CHAT_TOOL = {"type": "function", "function": {"name": "forecast", "parameters": PARAMETERS, "strict": True}}
TOOL = {"type": "function", "name": "forecast", "parameters": PARAMETERS, "strict": True}


def user(content):
    return {"role": "user", "content": content}


def chats(model):
    chat = client.chat.completions.create(model=model, messages=[user(WORDS)])
    assert chat.choices[0].message.content == SAID
    chunks = client.chat.completions.create(model=model, messages=[user(WORDS)], stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == SAID
    with client.chat.completions.stream(model=model, messages=[user(WORDS)]) as stream:
        text = "".join(event.delta for event in stream if event.type == "content.delta")
        assert (text, stream.get_final_completion().choices[0].message.content) == (SAID, SAID)
    parsed = client.chat.completions.parse(model=model, messages=[user("Where?")], response_format=Place)
    assert isinstance(parsed.choices[0].message.parsed, Place)
    messages = [user("Weather? [[sandbox tools=2]]")]
    for tools in (2, 0):
        with client.chat.completions.stream(model=model, messages=messages, tools=[CHAT_TOOL]) as stream:
            message = stream.get_final_completion().choices[0].message
        calls = message.tool_calls or []
        assert [call.function.parsed_arguments for call in calls] == [{"city": "Ur"}] * tools
        messages.append(message)
        messages.extend({"role": "tool", "tool_call_id": call.id, "content": TOOL_RESULT} for call in calls)
    assert messages[-1].content.startswith("every coin")


def responses(model):
    assert client.responses.create(model=model, input=WORDS).output_text == SAID
    with client.responses.stream(model=model, input=WORDS) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        assert (text, stream.get_final_response().output_text) == (SAID, SAID)
    parsed = client.responses.parse(model=model, input="Where?", text_format=Place)
    assert isinstance(parsed.output_parsed, Place)
    with client.responses.stream(model=model, input="Where?", text_format=Place) as stream:
        assert isinstance(stream.get_final_response().output_parsed, Place)
    called = client.responses.create(model=model, input="Weather? [[sandbox tools=2]]", tools=[TOOL])
    calls = [item for item in called.output if item.type == "function_call"]
    assert len(calls) == 2
    results = [{"type": "function_call_output", "call_id": call.call_id, "output": TOOL_RESULT} for call in calls]
    answered = client.responses.create(model=model, previous_response_id=called.id, input=results, tools=[TOOL])
    assert answered.output_text.startswith("every coin")


for name in MODELS:
    chats(name)
    responses(name)

embedded = client.embeddings.create(model="openai/text-embedding-3-small", input=["one", "two"])
assert [len(item.embedding) for item in embedded.data] == [1536, 1536]


def read(prompt):
    request = {"model": "openai/gpt-oss-120b", "messages": [user(prompt)], "tools": [CHAT_TOOL]}
    for _ in client.chat.completions.create(**request, stream=True):
        pass


expect_errors(read, APIError)
