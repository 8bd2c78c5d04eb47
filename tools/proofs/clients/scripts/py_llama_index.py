"""LlamaIndex's client for services that are compatible with OpenAI: complete, streaming, with a tool."""

import os

from interrupted_streams import expect_errors
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike

WORDS = "Hello [[sandbox tokens=3]]"
SAID = "every coin that"


def forecast(city: str) -> str:
    """Returns the forecast of a city."""
    return os.environ["TOOL_RESULT"]


def create_llm(model):
    return OpenAILike(
        model=model,
        api_base=os.environ["GATEWAY_URL"] + "/v1",
        api_key=os.environ["API_KEY"],
        is_chat_model=True,
        is_function_calling_model=True,
        context_window=100_000,
        max_retries=0,
    )


tool = FunctionTool.from_defaults(forecast)

for model in ["openai/gpt-5-mini", "anthropic/claude-haiku-4.5"]:
    llm = create_llm(model)
    assert llm.chat([ChatMessage(WORDS)]).message.content == SAID
    assert [chunk.message.content for chunk in llm.stream_chat([ChatMessage(WORDS)])][-1] == SAID
    history = [ChatMessage("Weather? [[sandbox tools=2]]")]
    called = llm.chat_with_tools([tool], chat_history=history, allow_parallel_tool_calls=True)
    calls = llm.get_tool_calls_from_response(called)
    assert len(calls) == 2
    history.append(called.message)
    for call in calls:
        result = str(tool(**call.tool_kwargs))
        more = {"tool_call_id": call.tool_id}
        history.append(ChatMessage(result, role=MessageRole.TOOL, additional_kwargs=more))
    answered = llm.chat_with_tools([tool], chat_history=history)
    assert answered.message.content.startswith("every coin")

reasoning = create_llm("openai/gpt-oss-120b")
expect_errors(lambda prompt: list(reasoning.stream_chat_with_tools([tool], chat_history=[ChatMessage(prompt)])))
