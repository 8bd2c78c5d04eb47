"""Haystack over chats and Responses: complete, streaming with usage, a tool that its agent runs, embeddings."""

import os
from typing import Annotated

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

from interrupted_streams import expect_errors
from haystack.components.agents import Agent
from haystack.components.embedders import OpenAITextEmbedder
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import tool
from haystack.utils import Secret

OPTIONS = {
    "api_base_url": os.environ["GATEWAY_URL"] + "/v1",
    "api_key": Secret.from_env_var("API_KEY"),
    "max_retries": 0,
}
SAID = "every coin that"


@tool
def forecast(city: Annotated[str, "The city"]) -> str:
    """Returns the forecast of a city."""
    return os.environ["TOOL_RESULT"]


def user(content):
    return [ChatMessage.from_user(content)]


def reply(generator, content, **options):
    return generator.run(user(content), **options)["replies"][0]


for model in ["openai/gpt-5-mini", "anthropic/claude-haiku-4.5"]:
    for kind in [OpenAIChatGenerator, OpenAIResponsesChatGenerator]:
        generator = kind(model=model, **OPTIONS)
        tokens = "completion_tokens" if kind is OpenAIChatGenerator else "output_tokens"
        message = reply(generator, "Hello [[sandbox tokens=3]]")
        assert (message.text, message.meta["usage"][tokens]) == (SAID, 3)
        chunks = []
        message = reply(generator, "Hello [[sandbox tokens=3]]", streaming_callback=chunks.append)
        assert ("".join(chunk.content for chunk in chunks), message.text) == (SAID, SAID)
        for streaming_callback in [None, chunks.append]:
            agent = Agent(chat_generator=generator, tools=[forecast], streaming_callback=streaming_callback)
            assert agent.run(user("Weather? [[sandbox tool=forecast]]"))["last_message"].text.startswith("every coin")

embedder = OpenAITextEmbedder(model="openai/text-embedding-3-small", **OPTIONS)
assert len(embedder.run("one")["embedding"]) == 1536


def read(kind, prompt):
    generator = kind(model="openai/gpt-oss-120b", tools=[forecast], streaming_callback=lambda chunk: None, **OPTIONS)
    message = reply(generator, prompt)
    # Haystack raises no error if a response failed. Only the metadata of the message says so.
    if message.meta.get("status") == "failed":
        raise RuntimeError(message.meta["error"])


for kind in [OpenAIChatGenerator, OpenAIResponsesChatGenerator]:
    expect_errors(lambda prompt: read(kind, prompt))
