"""OpenAI's Agents SDK for Python over Responses and over chats: a function and a tool of an MCP server."""

import asyncio
import os

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from agents.mcp import MCPServerStdio
from interrupted_streams import expect_errors
from openai import AsyncOpenAI

set_tracing_disabled(True)
TOOL_RESULT = os.environ["TOOL_RESULT"]
client = AsyncOpenAI(base_url=os.environ["GATEWAY_URL"] + "/v1", api_key=os.environ["API_KEY"], max_retries=0)
SERVER = {"command": os.environ["NODE"], "args": [os.environ["MCP_SERVER"]], "env": {"TOOL_RESULT": TOOL_RESULT}}


@function_tool
def picture(city: str) -> str:
    """Describes a picture of a city."""
    return TOOL_RESULT


async def ask(agent, question):
    whole = await Runner.run(agent, question)
    assert whole.final_output.startswith("every coin")
    streamed = Runner.run_streamed(agent, question)
    async for _ in streamed.stream_events():
        pass
    assert streamed.final_output.startswith("every coin")


async def main():
    async with MCPServerStdio(params=SERVER, name="proof") as server:
        for name in ["openai/gpt-5-mini", "anthropic/claude-haiku-4.5"]:
            for kind in [OpenAIResponsesModel, OpenAIChatCompletionsModel]:
                model = kind(model=name, openai_client=client)
                agent = Agent(name="Proof", instructions="Be brief.", model=model, tools=[picture], mcp_servers=[server])
                for tool in ["picture", "forecast"]:
                    await ask(agent, f"Tell! [[sandbox tool={tool}]]")


@function_tool
def forecast(city: str) -> str:
    """Returns the forecast of a city."""
    return TOOL_RESULT


async def read(kind, prompt):
    agent = Agent(name="Proof", model=kind(model="openai/gpt-oss-120b", openai_client=client), tools=[forecast])
    async for _ in Runner.run_streamed(agent, prompt).stream_events():
        pass


with asyncio.Runner() as runner:
    runner.run(main())
    for kind in [OpenAIResponsesModel, OpenAIChatCompletionsModel]:
        expect_errors(lambda prompt: runner.run(read(kind, prompt)))
