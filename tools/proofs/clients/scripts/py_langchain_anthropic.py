"""LangChain over Anthropic's Messages: complete, streaming with usage, a tool, structured output."""

import os

from interrupted_streams import expect_errors
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from pydantic import BaseModel

OPTIONS = {"base_url": os.environ["GATEWAY_URL"], "api_key": os.environ["API_KEY"], "max_tokens": 2000}
WORDS = "Hello [[sandbox tokens=3]]"
SAID = "every coin that"


class Place(BaseModel):
    city: str
    days: int


@tool
def forecast(city: str) -> str:
    """Returns the forecast of a city."""
    return os.environ["TOOL_RESULT"]


for model in ["anthropic/claude-haiku-4.5", "claude-haiku-4-5", "openai/gpt-5-mini"]:
    chat = ChatAnthropic(model=model, max_retries=0, **OPTIONS)
    message = chat.invoke(WORDS)
    assert (message.text, message.usage_metadata["output_tokens"]) == (SAID, 3)
    chunks = list(chat.stream(WORDS))
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    assert (whole.text, whole.usage_metadata["output_tokens"]) == (SAID, 3)
    assert whole.usage_metadata["input_tokens"] == message.usage_metadata["input_tokens"]
    assert whole.response_metadata["stop_reason"] == "end_turn"
    question = HumanMessage("Weather? [[sandbox tools=2]]")
    tooled = chat.bind_tools([forecast])
    called = tooled.invoke([question])
    assert len(called.tool_calls) == 2
    results = [forecast.invoke(call) for call in called.tool_calls]
    assert tooled.invoke([question, called, *results]).text.startswith("every coin")
    assert isinstance(chat.with_structured_output(Place).invoke("Where?"), Place)

interrupted = ChatAnthropic(model="openai/gpt-oss-120b", max_retries=0, **OPTIONS).bind_tools([forecast])
expect_errors(lambda prompt: list(interrupted.stream(prompt)))
