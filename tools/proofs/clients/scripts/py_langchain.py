"""LangChain over chats and over Responses: complete, streaming with usage, with a tool, with structured output."""

import os

from interrupted_streams import expect_errors
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

options = {"base_url": os.environ["GATEWAY_URL"] + "/v1", "api_key": os.environ["API_KEY"]}
WORDS = "Hello [[sandbox tokens=3]]"
SAID = "every coin that"


class Place(BaseModel):
    city: str
    days: int


@tool
def forecast(city: str) -> str:
    """Returns the forecast of a city."""
    return os.environ["TOOL_RESULT"]


def text_of(message):
    return message.text() if callable(message.text) and not isinstance(message.text, str) else str(message.text)


for model in ["openai/gpt-5-mini", "anthropic/claude-haiku-4.5"]:
    for use_responses_api in [False, True]:
        chat = ChatOpenAI(
            model=model, max_retries=0, use_responses_api=use_responses_api, stream_usage=True, **options
        )
        assert text_of(chat.invoke(WORDS)) == SAID
        chunks = list(chat.stream(WORDS))
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole += chunk
        assert (text_of(whole), whole.usage_metadata["output_tokens"]) == (SAID, 3)
        question = HumanMessage("Weather? [[sandbox tools=2]]")
        tooled = chat.bind_tools([forecast])
        called = tooled.invoke([question])
        assert len(called.tool_calls) == 2
        results = [forecast.invoke(call) for call in called.tool_calls]
        assert text_of(tooled.invoke([question, called, *results])).startswith("every coin")
        assert isinstance(chat.with_structured_output(Place).invoke("Where?"), Place)

embeddings = OpenAIEmbeddings(model="openai/text-embedding-3-small", check_embedding_ctx_length=False, **options)
assert len(embeddings.embed_query("one")) == 1536

for use_responses_api in [False, True]:
    chat = ChatOpenAI(model="openai/gpt-oss-120b", max_retries=0, use_responses_api=use_responses_api, **options)
    tooled = chat.bind_tools([forecast])
    expect_errors(lambda prompt: list(tooled.stream(prompt)))
