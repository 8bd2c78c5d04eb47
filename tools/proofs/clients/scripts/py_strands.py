"""Strands Agents over chats and Responses: complete, streaming with usage, a tool, structured output."""

import asyncio
import os

from interrupted_streams import expect_errors
from pydantic import BaseModel
from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.models.openai_responses import OpenAIResponsesModel

WORDS = "Hello [[sandbox tokens=3]]"
SAID = "every coin that"
CLIENT = {"base_url": os.environ["GATEWAY_URL"] + "/v1", "api_key": os.environ["API_KEY"], "max_retries": 0}


class Place(BaseModel):
    """A place and how many days to stay there."""

    city: str
    days: int


@tool
def forecast(city: str) -> str:
    """Returns the forecast of a city."""
    return os.environ["TOOL_RESULT"]


def agent(model, **options):
    return Agent(model=model, callback_handler=None, retry_strategy=None, **options)


async def stream(running, prompt):
    return "".join([event["data"] async for event in running.stream_async(prompt) if "data" in event])


for name in ["openai/gpt-5-mini", "anthropic/claude-haiku-4.5"]:
    models = [
        OpenAIModel(client_args=CLIENT, model_id=name),
        OpenAIModel(client_args=CLIENT, model_id=name, stream=False),
        OpenAIResponsesModel(client_args=CLIENT, model_id=name),
    ]
    for model in models:
        whole = agent(model)(WORDS)
        assert (str(whole).strip(), whole.stop_reason) == (SAID, "end_turn")
        assert whole.metrics.accumulated_usage["outputTokens"] == 3
        assert asyncio.run(stream(agent(model), WORDS)) == SAID
        assert str(agent(model, tools=[forecast])("Weather? [[sandbox tool=forecast]]")).startswith("every coin")
        assert isinstance(agent(model)("Where?", structured_output_model=Place).structured_output, Place)

for kind in [OpenAIModel, OpenAIResponsesModel]:
    interrupted = kind(client_args=CLIENT, model_id="openai/gpt-oss-120b")
    expect_errors(lambda prompt: asyncio.run(stream(agent(interrupted, tools=[forecast]), prompt)))
