"""Pydantic AI over chats, Responses and Messages: complete, streaming with usage, a tool, structured output."""

import asyncio
import os

from anthropic import AsyncAnthropic
from interrupted_streams import expect_errors
from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

URL = os.environ["GATEWAY_URL"]
OPTIONS = {"api_key": os.environ["API_KEY"], "max_retries": 0}
WORDS = "Hello [[sandbox tokens=3]]"
SAID = "every coin that"


class Place(BaseModel):
    city: str
    days: int


def forecast(city: str) -> str:
    """Returns the forecast of a city."""
    return os.environ["TOOL_RESULT"]


def models(name):
    """Yields the model over each protocol."""
    openai = OpenAIProvider(openai_client=AsyncOpenAI(base_url=URL + "/v1", **OPTIONS))
    anthropic = AnthropicProvider(anthropic_client=AsyncAnthropic(base_url=URL, **OPTIONS))
    yield OpenAIChatModel(name, provider=openai)
    yield OpenAIResponsesModel(name, provider=openai)
    yield AnthropicModel(name, provider=anthropic)


async def chats(model):
    whole = await Agent(model).run(WORDS)
    assert (whole.output, whole.usage.output_tokens) == (SAID, 3)
    async with Agent(model).run_stream(WORDS) as streamed:
        assert "".join([text async for text in streamed.stream_text(delta=True)]) == SAID
        assert streamed.usage.output_tokens == 3
        assert streamed.response.finish_reason == "stop"
    agent = Agent(model, tools=[forecast])
    question = "Weather? [[sandbox tool=forecast]]"
    assert (await agent.run(question)).output.startswith("every coin")
    async with agent.run_stream(question) as streamed:
        assert (await streamed.get_output()).startswith("every coin")
    assert isinstance((await Agent(model, output_type=Place).run("Where?")).output, Place)


async def main():
    for name in ["openai/gpt-5-mini", "anthropic/claude-haiku-4.5"]:
        for model in models(name):
            await chats(model)


async def read(kind, prompt):
    model = list(models("openai/gpt-oss-120b"))[kind]
    async with Agent(model, tools=[forecast]).run_stream(prompt) as streamed:
        async for _ in streamed.stream_text():
            pass


with asyncio.Runner() as runner:
    runner.run(main())
    for kind in range(3):
        expect_errors(lambda prompt: runner.run(read(kind, prompt)))
