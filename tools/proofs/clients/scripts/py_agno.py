"""Agno over chats: complete, streaming with usage, a tool, structured output."""

import os

from agno.agent import Agent, RunContentEvent, RunErrorEvent
from agno.models.openai.like import OpenAILike
from interrupted_streams import expect_errors
from pydantic import BaseModel

WORDS = "Hello [[sandbox tokens=3]]"
SAID = "every coin that"


class Place(BaseModel):
    city: str
    days: int


def forecast(city: str) -> str:
    """Returns the forecast of a city."""
    return os.environ["TOOL_RESULT"]


def agent(name, **options):
    url = os.environ["GATEWAY_URL"] + "/v1"
    model = OpenAILike(id=name, base_url=url, api_key=os.environ["API_KEY"], max_retries=0)
    return Agent(model=model, telemetry=False, **options)


def stream(running, prompt):
    """Streams a run. Agno yields an event for an error, where a complete run raises it."""
    text = ""
    for event in running.run(prompt, stream=True):
        if isinstance(event, RunContentEvent):
            text += event.content or ""
        if isinstance(event, RunErrorEvent):
            raise RuntimeError(event.content)
    return text


for name in ["openai/gpt-5-mini", "anthropic/claude-haiku-4.5"]:
    whole = agent(name).run(WORDS)
    assert (whole.content, whole.metrics.output_tokens) == (SAID, 3)
    assert stream(agent(name), WORDS) == SAID
    question = "Weather? [[sandbox tool=forecast]]"
    assert agent(name, tools=[forecast]).run(question).content.startswith("every coin")
    assert stream(agent(name, tools=[forecast]), question).startswith("every coin")
    assert isinstance(agent(name, output_schema=Place).run("Where?").content, Place)

expect_errors(lambda prompt: stream(agent("openai/gpt-oss-120b", tools=[forecast]), prompt))
