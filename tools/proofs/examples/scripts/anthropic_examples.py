"""The usual examples of Anthropic's documentation."""

import json
import os

from anthropic import Anthropic, APIStatusError, beta_tool
from pydantic import BaseModel
from run_examples import add_examples, example, run_examples

PNG, PDF = os.environ["PNG"], os.environ["PDF"]
MODEL = "claude-haiku-4-5"
THINKING = {"type": "enabled", "budget_tokens": 1_024}

client = Anthropic(base_url=os.environ["GATEWAY_URL"], api_key=os.environ["API_KEY"], max_retries=0)


class Contact(BaseModel):
    name: str
    email: str


def text(value):
    return {"type": "text", "text": value}


def user(content):
    return {"role": "user", "content": content}


def base(**body):
    return {"model": MODEL, "max_tokens": 2_000, "messages": [user("Hello, Claude")], **body}


def create(**body):
    return client.messages.create(**base(**body))


def stream(**body):
    with client.messages.stream(**base(**body)) as events:
        return events.get_final_message()


def beta(name, **body):
    return client.beta.messages.create(**base(**body), betas=[name])


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
DOCUMENT = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}}
INPUT_SCHEMA = {
    "type": "object",
    "properties": {"location": {"type": "string", "description": "The city and state"}},
    "required": ["location"],
}
WEATHER = {"name": "get_weather", "description": "Returns the weather", "input_schema": INPUT_SCHEMA}
ASKS_WEATHER = [user("What is the weather in San Francisco? [[sandbox tool=get_weather]]")]
ASKS_TWICE = [user("The weather in SF and NYC? [[sandbox tools=2]]")]
ASKS_REASONING = [user("Are there infinite primes? [[sandbox tokens=40 reasoning=20]]")]
SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
ASKS_SEARCH = {"messages": [user("The weather in NYC? [[sandbox tool=web_search]]")], "tools": [SEARCH]}


def assert_message(message):
    assert (message.type, message.role, message.stop_reason) == ("message", "assistant", "end_turn")
    assert message.content[-1].text
    assert message.usage.input_tokens > 0 and message.usage.output_tokens > 0


def assert_calls(message, name, count=1):
    assert message.stop_reason == "tool_use"
    calls = [block for block in message.content if block.type == "tool_use"]
    assert [call.name for call in calls] == [name] * count
    return calls


def reply(messages, called, calls):
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "15 degrees"} for call in calls]
    return [*messages, {"role": "assistant", "content": called.content}, user(results)]


@example("message: several turns")
def _():
    turns = [user("Hello, Claude"), {"role": "assistant", "content": "Hello!"}, user("Describe LLMs to me")]
    assert_message(create(messages=turns))


@example("message: service tier")
def _():
    message = create(service_tier="auto")
    assert_message(message)
    assert message.usage.service_tier == "standard"


@example("message: streaming")
def _():
    events = list(create(stream=True))
    assert events[0].type == "message_start"
    assert events[0].message.usage.input_tokens > 0
    assert events[-1].type == "message_stop"


@example("message: streaming helper")
def _():
    with client.messages.stream(**base()) as events:
        received = "".join(events.text_stream)
        message = events.get_final_message()
    assert_message(message)
    assert received == message.content[0].text


@example("tools: use and result")
def _():
    called = create(messages=ASKS_WEATHER, tools=[WEATHER])
    calls = assert_calls(called, "get_weather")
    assert "location" in calls[0].input
    assert_message(create(messages=reply(ASKS_WEATHER, called, calls), tools=[WEATHER]))


@example("tools: parallel calls")
def _():
    called = create(messages=ASKS_TWICE, tools=[WEATHER])
    calls = assert_calls(called, "get_weather", 2)
    assert_message(create(messages=reply(ASKS_TWICE, called, calls), tools=[WEATHER]))


@example("tools: no parallel calls")
def _():
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    assert_calls(create(messages=ASKS_TWICE, tools=[WEATHER], tool_choice=choice), "get_weather")


@example("tools: strict")
def _():
    tool = {**WEATHER, "strict": True, "input_schema": {**INPUT_SCHEMA, "additionalProperties": False}}
    assert_calls(create(messages=ASKS_WEATHER, tools=[tool]), "get_weather")


@example("tools: runner")
def _():
    @beta_tool
    def get_weather(location: str) -> str:
        """Returns the weather of a location."""
        return "15 degrees"

    assert_message(client.beta.messages.tool_runner(**base(messages=ASKS_WEATHER, tools=[get_weather])).until_done())


@example("tools: bash")
def _():
    tools = [{"type": "bash_20250124", "name": "bash"}]
    assert_calls(create(messages=[user("List files [[sandbox tool=bash]]")], tools=tools), "bash")


@example("tools: text editor")
def _():
    name = "str_replace_based_edit_tool"
    tools = [{"type": "text_editor_20250728", "name": name, "max_characters": 10_000}]
    assert_calls(create(messages=[user(f"Fix primes.py [[sandbox tool={name}]]")], tools=tools), name)


@example("tools: memory")
def _():
    tools = [{"type": "memory_20250818", "name": "memory"}]
    assert_calls(create(messages=[user("Remember me [[sandbox tool=memory]]")], tools=tools), "memory")


@example("tools: memory, runner")
def _():
    from anthropic.lib.tools import BetaAbstractMemoryTool

    def run(self, command):
        return "No memories yet"

    names = ("view", "create", "str_replace", "insert", "delete", "rename", "clear_all_memory")
    memory = type("Memory", (BetaAbstractMemoryTool,), dict.fromkeys(names, run))()
    request = base(messages=[user("Remember me [[sandbox tool=memory]]")], tools=[memory])
    assert_message(client.beta.messages.tool_runner(**request).until_done())


@example("tools: computer use")
def _():
    display = {"display_width_px": 1_024, "display_height_px": 768}
    tools = [{"type": "computer_20250124", "name": "computer", **display}]
    messages = [user("Save a screenshot [[sandbox tool=computer]]")]
    assert_calls(beta("computer-use-2025-01-24", messages=messages, tools=tools), "computer")


@example("tools: web search")
def _():
    message = create(**ASKS_SEARCH)
    kinds = [block.type for block in message.content]
    assert "server_tool_use" in kinds and "web_search_tool_result" in kinds
    citations = [citation for block in message.content if block.type == "text" for citation in block.citations or []]
    assert citations[0].type == "web_search_result_location"
    assert message.usage.server_tool_use.web_search_requests > 0


@example("tools: web search, streaming")
def _():
    assert any(block.type == "text" and block.citations for block in stream(**ASKS_SEARCH).content)


@example("thinking: extended")
def _():
    message = create(messages=ASKS_REASONING, thinking=THINKING)
    assert_message(message)
    assert message.content[0].type == "thinking"
    assert message.content[0].signature
    turns = [*ASKS_REASONING, {"role": "assistant", "content": message.content}, user("Thanks. And twin primes?")]
    assert_message(create(messages=turns, thinking=THINKING))


@example("thinking: streaming")
def _():
    events = list(create(messages=ASKS_REASONING, thinking=THINKING, stream=True))
    kinds = {event.delta.type for event in events if event.type == "content_block_delta"}
    assert {"thinking_delta", "signature_delta"} <= kinds


@example("thinking: adaptive")
def _():
    options = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "medium"}}
    assert_message(create(model="claude-opus-4-6", messages=ASKS_REASONING, **options))


@example("prompt caching: five minutes")
def _():
    system = [text("You analyse literary works."), {**text("It is a truth."), "cache_control": {"type": "ephemeral"}}]
    message = create(system=system)
    assert_message(message)
    assert isinstance(message.usage.cache_read_input_tokens, int)


@example("prompt caching: one hour")
def _():
    system = [{**text("It is a truth."), "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    assert_message(create(system=system))


@example("document: text")
def _():
    source = {"type": "text", "media_type": "text/plain", "data": "The grass is green."}
    assert_message(create(messages=[user([{"type": "document", "source": source}, text("What colour is it?")])]))


@example("document: search result")
def _():
    result = {"type": "search_result", "source": "https://example.com", "title": "A page", "content": [text("Words")]}
    create(messages=[user([{**result, "citations": {"enabled": True}}, text("What is it about?")])])


@example("document: file by id")
def _():
    document = {"type": "document", "source": {"type": "file", "file_id": "file_abc123"}}
    beta("files-api-2025-04-14", messages=[user([document, text("Hello")])])


@example("structured output: schema")
def _():
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    output_format = {"type": "json_schema", "schema": {**schema, "additionalProperties": False}}
    assert json.loads(create(output_config={"format": output_format}).content[0].text)["name"]


@example("structured output: helper")
def _():
    assert isinstance(client.messages.parse(**base(), output_format=Contact).parsed_output, Contact)


def manage_context(beta_name, edit, **body):
    return beta(beta_name, context_management={"edits": [edit]}, **body)


@example("context: clear thinking")
def _():
    edit = {"type": "clear_thinking_20251015", "keep": "all"}
    assert_message(manage_context("context-management-2025-06-27", edit, thinking=THINKING))


@example("skills: in a container")
def _():
    skill = {"type": "anthropic", "skill_id": "pptx", "version": "latest"}
    beta("skills-2025-10-02", container={"skills": [skill]})


@example("count tokens: message")
def _():
    assert client.messages.count_tokens(model=MODEL, messages=[user("Hello, Claude")]).input_tokens > 0


@example("count tokens: tools, image, PDF")
def _():
    messages = [user([IMAGE, DOCUMENT, text("What is this?")])]
    request = {"model": MODEL, "system": "You are a scientist", "tools": [WEATHER], "messages": messages}
    assert client.messages.count_tokens(**request).input_tokens > 100


@example("model: list")
def _():
    models = client.models.list(limit=20)
    assert models.data[0].type == "model"
    assert models.first_id == models.data[0].id
    assert isinstance(models.has_more, bool)
    assert models.data[0].created_at.year > 2000


@example("model: all pages")
def _():
    assert len(list(client.models.list(limit=20))) > 20


PREFILLED = [user("What is Latin for ant? (A) Apoidea, (B) Formicidae"), {"role": "assistant", "content": "("}]
MCP_SERVER = {"type": "url", "url": "https://example.com/sse", "name": "example"}
MCP_TOOLSET = {"type": "mcp_toolset", "mcp_server_name": "example"}
BATCH = "msgbatch_01HkcTjaV5uDC8jWR4ZsDV8d"
batches = client.messages.batches
files = client.beta.files


def offer(**tool):
    return lambda: create(tools=[tool, WEATHER])


add_examples(
    {
        "message: basic": lambda: assert_message(create()),
        "message: system prompt": lambda: assert_message(create(system="You are a seasoned data scientist.")),
        "message: prefilled": lambda: assert_message(create(messages=PREFILLED)),
        "message: prefilled, Claude 4.6 or later": lambda: create(model="claude-opus-4-6", messages=PREFILLED),
        "message: vision": lambda: assert_message(create(messages=[user([IMAGE, text("What is in this image?")])])),
        "message: stop sequence, metadata": lambda: assert_message(
            create(stop_sequences=["###"], metadata={"user_id": "user-1"})
        ),
        "tools: streaming": lambda: assert_calls(stream(messages=ASKS_WEATHER, tools=[WEATHER]), "get_weather"),
        "tools: choice of a tool": lambda: assert_calls(
            create(tools=[WEATHER], tool_choice={"type": "tool", "name": "get_weather"}), "get_weather"
        ),
        "tools: any tool": lambda: assert_calls(create(tools=[WEATHER], tool_choice={"type": "any"}), "get_weather"),
        "tools: none": lambda: assert_message(create(tools=[WEATHER], tool_choice={"type": "none"})),
        "tools: computer toolset": offer(type="computer_toolset_20260801"),
        "tools: web fetch": offer(type="web_fetch_20250910", name="web_fetch", max_uses=5),
        "tools: code execution": offer(type="code_execution_20250825", name="code_execution"),
        "tools: tool search": offer(type="tool_search_tool_regex_20251119", name="tool_search_tool_regex"),
        "tools: MCP connector": lambda: beta("mcp-client-2025-11-20", mcp_servers=[MCP_SERVER], tools=[MCP_TOOLSET]),
        "tools: programmatic calls": lambda: create(
            tools=[{**WEATHER, "allowed_callers": ["code_execution_20260120"]}]
        ),
        "tools: advisor": lambda: beta(
            "advisor-tool-2026-03-01", tools=[{"type": "advisor_20260301", "name": "advisor", "model": MODEL}]
        ),
        "prompt caching: automatic": lambda: assert_message(create(cache_control={"type": "ephemeral"})),
        "document: PDF": lambda: assert_message(create(messages=[user([DOCUMENT, text("What are the findings?")])])),
        "document: citations": lambda: create(
            messages=[user([{**DOCUMENT, "citations": {"enabled": True}}, text("What is it about?")])]
        ),
        "context: clear tool uses": lambda: manage_context(
            "context-management-2025-06-27", {"type": "clear_tool_uses_20250919"}
        ),
        "context: compaction": lambda: manage_context("compact-2026-01-12", {"type": "compact_20260112"}),
        "fast mode": lambda: beta("fast-mode-2026-02-01", model="claude-opus-4-6", speed="fast"),
        "data residency": lambda: create(inference_geo="us"),
        "batch: create": lambda: batches.create(requests=[{"custom_id": "first", "params": base()}]),
        "batch: list": lambda: batches.list(),
        "batch: retrieve": lambda: batches.retrieve(BATCH),
        "batch: cancel": lambda: batches.cancel(BATCH),
        "model: retrieve": lambda: client.models.retrieve(MODEL).type.index("model"),
        "file: upload": lambda: files.upload(file=("hello.txt", b"Hello", "text/plain")),
        "file: list": lambda: files.list(),
        "file: retrieve": lambda: files.retrieve_metadata("file_abc123"),
        "file: download": lambda: files.download("file_abc123"),
        "file: delete": lambda: files.delete("file_abc123"),
        "skill: list": lambda: client.beta.skills.list(),
        "skill: create": lambda: client.beta.skills.create(files=[("a/SKILL.md", b"---\nname: a\n---\n")]),
        "agent: create": lambda: client.beta.agents.create(name="Coder", model=MODEL),
        "session: create": lambda: client.beta.sessions.create(agent="agent_123", environment_id="env_123"),
        "environment: list": lambda: client.beta.environments.list(),
    }
)


def describe_rejection(error):
    if not isinstance(error, APIStatusError):
        return None
    details = error.body["error"]["details"]
    return {"status": error.status_code, "message": error.message, "param": details.get("param")}


run_examples(describe_rejection)
