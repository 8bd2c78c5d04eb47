"""Instructor: structured output with tools and with schemas, complete and partial; a tool result is sent in a chat."""

import os

import instructor
from interrupted_streams import expect_errors
from openai import OpenAI
from pydantic import BaseModel, ConfigDict

client = OpenAI(base_url=os.environ["GATEWAY_URL"] + "/v1", api_key=os.environ["API_KEY"], max_retries=0)


class Place(BaseModel):
    city: str
    days: int


MODES = [instructor.Mode.TOOLS, instructor.Mode.TOOLS_STRICT, instructor.Mode.JSON_SCHEMA, instructor.Mode.JSON]

for model in ["openai/gpt-5-mini", "anthropic/claude-haiku-4.5"]:
    for mode in MODES:
        structured = instructor.from_openai(client, mode=mode)
        directive = ' [[sandbox text="{\\"city\\":\\"Ur\\",\\"days\\":2}"]]' if mode == instructor.Mode.JSON else ""
        messages = [{"role": "user", "content": "Where?" + directive}]
        asked = {"model": model, "response_model": Place, "messages": messages, "max_retries": 0}
        place, chat = structured.create_with_completion(**asked)
        assert isinstance(place, Place)
        *_, last = structured.create_partial(**asked)
        assert isinstance(last.city, str)
        if mode == instructor.Mode.TOOLS:
            message = {"content": None, **chat.choices[0].message.model_dump(exclude_none=True)}
            result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": os.environ["TOOL_RESULT"]}
            assert isinstance(structured.create(**{**asked, "messages": [*messages, message, result]}), Place)


class Weather(BaseModel):
    """Returns the forecast of a city."""

    model_config = ConfigDict(title="forecast")
    city: str


def read(prompt):
    asked = {"messages": [{"role": "user", "content": prompt}], "max_retries": 0}
    structured = instructor.from_openai(client, mode=instructor.Mode.TOOLS)
    list(structured.create_partial(model="openai/gpt-oss-120b", response_model=Weather, **asked))


expect_errors(read)
