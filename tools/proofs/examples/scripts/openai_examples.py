"""The usual examples of OpenAI's documentation."""

import base64
import json
import os

from openai import APIStatusError, NotFoundError, OpenAI
from pydantic import BaseModel
from run_examples import add_examples, example, run_examples

PNG, PDF, WAV = (os.environ[name] for name in ("PNG", "PDF", "WAV"))
MODEL = "gpt-5-mini"
CHAT_MODEL = "gpt-4o-mini"
PNG_URL = f"data:image/png;base64,{PNG}"
PDF_URL = f"data:application/pdf;base64,{PDF}"
PNG_FILE = ("image.png", base64.b64decode(PNG), "image/png")
WAV_FILE = ("speech.wav", base64.b64decode(WAV), "audio/wav")
MP4_FILE = ("clip.mp4", b"\0", "video/mp4")
JSONL_FILE = ("requests.jsonl", b'{"custom_id":"1"}\n')

client = OpenAI(base_url=os.environ["GATEWAY_URL"] + "/v1", api_key=os.environ["API_KEY"], max_retries=0)


class CalendarEvent(BaseModel):
    name: str
    date: str
    participants: list[str]


class Step(BaseModel):
    explanation: str
    output: str


class Solution(BaseModel):
    steps: list[Step]
    final_result: str


PARAMETERS = {
    "type": "object",
    "properties": {"location": {"type": "string", "description": "City and country, such as Bogotá, Colombia"}},
    "required": ["location"],
    "additionalProperties": False,
}
WEATHER = {
    "name": "get_weather",
    "description": "Current temperature for a location",
    "parameters": PARAMETERS,
    "strict": True,
}
CHAT_TOOLS = [{"type": "function", "function": WEATHER}]
TOOLS = [{"type": "function", **WEATHER}]
NAMED_TOOL = {"type": "function", "function": {"name": "get_weather"}}
ASKS_WEATHER = "What is the weather in Paris? [[sandbox tool=get_weather]]"
ASKS_REASONING = "Why? [[sandbox tokens=30 reasoning=10]]"


def user(content):
    return [{"role": "user", "content": content}]


def chat(**body):
    return client.chat.completions.create(**{"model": MODEL, "messages": user("Say hello"), **body})


def respond(**body):
    return client.responses.create(**{"model": MODEL, "input": "Say hello", **body})


def assert_chat(completion):
    assert completion.object == "chat.completion"
    assert completion.choices[0].finish_reason == "stop"
    assert completion.choices[0].message.content
    assert completion.usage.total_tokens > 0


def assert_response(response):
    assert (response.object, response.status) == ("response", "completed")
    assert response.output_text
    assert response.usage.total_tokens > 0


def find(items, kind):
    return next(item for item in items if item.type == kind)


@example("chat: default")
def _():
    assert_chat(chat(messages=[{"role": "developer", "content": "You are helpful."}, *user("Hello!")]))


@example("chat: several turns")
def _():
    first = chat()
    assert_chat(chat(messages=[*user("Hello"), first.choices[0].message, *user("And again")]))


@example("chat: image input")
def _():
    image = {"type": "image_url", "image_url": {"url": PNG_URL, "detail": "high"}}
    assert_chat(chat(messages=user([{"type": "text", "text": "What is in this image?"}, image])))


@example("chat: file input")
def _():
    file = {"type": "file", "file": {"filename": "draconomicon.pdf", "file_data": PDF_URL}}
    assert_chat(chat(messages=user([file, {"type": "text", "text": "What is this file about?"}])))


@example("chat: audio input")
def _():
    audio = {"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}}
    messages = user([{"type": "text", "text": "What is in this recording?"}, audio])
    assert_chat(chat(model="gemini-3.1-pro", messages=messages))


@example("chat: streaming")
def _():
    chunks = list(chat(stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert any(chunk.choices and chunk.choices[0].finish_reason == "stop" for chunk in chunks)
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens > 0


@example("chat: streaming helper")
def _():
    with client.chat.completions.stream(model=MODEL, messages=user("Say hello")) as stream:
        assert_chat(stream.get_final_completion())


@example("chat: functions")
def _():
    messages = user(ASKS_WEATHER)
    message = chat(messages=messages, tools=CHAT_TOOLS, tool_choice="auto").choices[0].message
    [call] = message.tool_calls
    assert call.function.name == "get_weather"
    assert "location" in json.loads(call.function.arguments)
    messages += [message, {"role": "tool", "tool_call_id": call.id, "content": "18 °C"}]
    assert_chat(chat(messages=messages, tools=CHAT_TOOLS))


@example("chat: functions, streaming")
def _():
    chunks = list(chat(messages=user(ASKS_WEATHER), tools=CHAT_TOOLS, stream=True))
    calls = [call for chunk in chunks if chunk.choices for call in chunk.choices[0].delta.tool_calls or []]
    assert calls[0].function.name == "get_weather"
    assert "location" in json.loads("".join(call.function.arguments or "" for call in calls))


@example("chat: required function")
def _():
    message = chat(tools=CHAT_TOOLS, tool_choice=NAMED_TOOL).choices[0].message
    assert message.tool_calls[0].function.name == "get_weather"


@example("chat: allowed functions")
def _():
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NAMED_TOOL]}}
    message = chat(tools=CHAT_TOOLS, tool_choice=choice).choices[0].message
    assert message.tool_calls[0].function.name == "get_weather"


@example("chat: custom tool")
def _():
    tools = [{"type": "custom", "custom": {"name": "code_exec", "description": "Executes Python code"}}]
    message = chat(messages=user("Print hello [[sandbox tool=code_exec]]"), tools=tools).choices[0].message
    assert message.tool_calls[0].custom.input


@example("chat: logprobs")
def _():
    choice = chat(model=CHAT_MODEL, logprobs=True, top_logprobs=2).choices[0]
    assert len(choice.logprobs.content[0].top_logprobs) == 2


@example("chat: structured output")
def _():
    request = {"model": MODEL, "messages": user("Alice and Bob meet."), "response_format": CalendarEvent}
    completion = client.chat.completions.parse(**request)
    assert isinstance(completion.choices[0].message.parsed, CalendarEvent)


@example("chat: JSON mode")
def _():
    completion = chat(messages=user("Return a JSON object"), response_format={"type": "json_object"})
    json.loads(completion.choices[0].message.content)


@example("chat: reasoning")
def _():
    completion = chat(messages=user(ASKS_REASONING), reasoning_effort="medium")
    assert completion.usage.completion_tokens_details.reasoning_tokens > 0


@example("chat: web search")
def _():
    message = chat(messages=user("Any good news today?"), web_search_options={}).choices[0].message
    assert message.annotations[0].type == "url_citation"


@example("chat: predicted output")
def _():
    assert_chat(chat(model=CHAT_MODEL, prediction={"type": "content", "content": "class User {}"}))


@example("chat: several choices")
def _():
    assert len(chat(model=CHAT_MODEL, n=2, temperature=0.8, stop=["###"], seed=7).choices) == 2


@example("chat: service tier, cache key, metadata")
def _():
    options = {"service_tier": "auto", "prompt_cache_key": "example", "safety_identifier": "user-1"}
    assert_chat(chat(**options, metadata={"topic": "demo"}, verbosity="low"))


@example("completion: default")
def _():
    completion = client.completions.create(model=CHAT_MODEL, prompt="Say this is a test")
    assert completion.object == "text_completion"
    assert completion.choices[0].text


@example("completion: streaming")
def _():
    chunks = list(client.completions.create(model=CHAT_MODEL, prompt="Say this is a test", stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices)


@example("response: image input")
def _():
    image = {"type": "input_image", "image_url": PNG_URL, "detail": "auto"}
    assert_response(respond(input=user([{"type": "input_text", "text": "What is in this image?"}, image])))


@example("response: file input")
def _():
    file = {"type": "input_file", "filename": "draconomicon.pdf", "file_data": PDF_URL}
    assert_response(respond(input=user([file, {"type": "input_text", "text": "What is this file about?"}])))


@example("response: streaming")
def _():
    events = list(respond(stream=True))
    assert events[0].type == "response.created"
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert events[-1].type == "response.completed"


@example("response: streaming helper")
def _():
    with client.responses.stream(model=MODEL, input="Say hello") as stream:
        assert_response(stream.get_final_response())


@example("response: functions")
def _():
    items = user(ASKS_WEATHER)
    output = respond(input=items, tools=TOOLS, tool_choice="auto").output
    call = find(output, "function_call")
    assert "location" in json.loads(call.arguments)
    items += [*output, {"type": "function_call_output", "call_id": call.call_id, "output": "18 °C"}]
    assert_response(respond(input=items, tools=TOOLS))


@example("response: functions, streaming")
def _():
    events = list(respond(input=ASKS_WEATHER, tools=TOOLS, stream=True))
    assert "location" in json.loads(find(events, "response.function_call_arguments.done").arguments)


@example("response: custom tool")
def _():
    tools = [{"type": "custom", "name": "code_exec", "description": "Executes Python code"}]
    assert find(respond(input="Print hello [[sandbox tool=code_exec]]", tools=tools).output, "custom_tool_call").input


@example("response: structured output")
def _():
    response = client.responses.parse(model=MODEL, input="Solve 8x + 7 = -23", text_format=Solution)
    assert isinstance(response.output_parsed, Solution)


@example("response: JSON mode")
def _():
    json.loads(respond(input="Return JSON", text={"format": {"type": "json_object"}}).output_text)


@example("response: reasoning")
def _():
    response = respond(input=ASKS_REASONING, reasoning={"effort": "high", "summary": "auto"})
    assert_response(response)
    assert response.usage.output_tokens_details.reasoning_tokens > 0
    assert response.output[0].type == "reasoning"


@example("response: encrypted reasoning")
def _():
    options = {"store": False, "include": ["reasoning.encrypted_content"]}
    output = respond(input=user(ASKS_REASONING), **options).output
    assert find(output, "reasoning").encrypted_content
    assert_response(respond(input=[*user(ASKS_REASONING), *output, *user("And then?")], **options))


@example("response: web search")
def _():
    response = respond(input="Any good news today? [[sandbox tool=web_search]]", tools=[{"type": "web_search"}])
    assert find(response.output, "web_search_call")
    assert find(response.output, "message").content[0].annotations[0].type == "url_citation"


@example("response: previous response")
def _():
    first = respond(input="Write a joke")
    assert_response(respond(previous_response_id=first.id, input="Explain why this is funny."))


@example("response: truncation, metadata")
def _():
    response = respond(truncation="auto", metadata={"topic": "demo"}, max_output_tokens=100)
    assert_response(response)
    assert response.metadata == {"topic": "demo"}


@example("response: delete")
def _():
    response = respond()
    client.responses.delete(response.id)
    try:
        client.responses.retrieve(response.id)
    except NotFoundError:
        return
    raise AssertionError("the response still exists")


@example("response: input items")
def _():
    assert client.responses.input_items.list(respond().id).data[0].role == "user"


@example("response: compact")
def _():
    compaction = client.responses.compact(model=MODEL, input=user("Say hello"))
    assert compaction.object == "response.compaction"
    assert find(compaction.output, "compaction")


@example("response: count tokens")
def _():
    assert client.responses.input_tokens.count(model=MODEL, input="Write a joke.").input_tokens > 0


@example("embedding: default")
def _():
    request = {"model": "text-embedding-3-small", "input": "The food was delicious.", "encoding_format": "float"}
    assert len(client.embeddings.create(**request).data[0].embedding) == 1_536


@example("embedding: dimensions")
def _():
    request = {"model": "text-embedding-3-small", "input": ["one", "two"], "dimensions": 256}
    assert [len(item.embedding) for item in client.embeddings.create(**request).data] == [256, 256]


IMAGE = {"model": "gpt-image-1.5", "prompt": "A cute baby sea otter"}


@example("image: generate")
def _():
    assert base64.b64decode(client.images.generate(**IMAGE, n=1).data[0].b64_json)


@example("image: generate, streaming")
def _():
    events = list(client.images.generate(**IMAGE, stream=True, partial_images=2))
    assert events[-1].type == "image_generation.completed"
    assert base64.b64decode(events[-1].b64_json)


@example("image: edit")
def _():
    assert base64.b64decode(client.images.edit(**IMAGE, image=[PNG_FILE]).data[0].b64_json)


@example("image: edit, streaming")
def _():
    events = list(client.images.edit(**IMAGE, image=PNG_FILE, stream=True))
    assert events[-1].type == "image_edit.completed"


SPEECH = {"model": "tts-1", "voice": "alloy", "input": "The quick brown fox jumped over the lazy dog."}


@example("speech: default")
def _():
    assert client.audio.speech.create(**SPEECH).content


@example("speech: streaming")
def _():
    with client.audio.speech.with_streaming_response.create(**SPEECH, response_format="wav") as response:
        assert b"".join(response.iter_bytes())


@example("transcription: default")
def _():
    assert client.audio.transcriptions.create(file=WAV_FILE, model="whisper-1").text


@example("transcription: word timestamps")
def _():
    options = {"response_format": "verbose_json", "timestamp_granularities": ["word"]}
    assert client.audio.transcriptions.create(file=WAV_FILE, model="whisper-1", **options).words[0].start >= 0


VIDEO = {"model": "sora-2", "prompt": "A calico cat playing a piano on stage"}


@example("video: create")
def _():
    video = client.videos.create(**VIDEO)
    assert (video.object, video.status) == ("video", "queued")


@example("video: create with an image")
def _():
    request = {"model": "sora-2-i2v", "prompt": "She turns around", "input_reference": PNG_FILE}
    assert client.videos.create(**request).object == "video"


@example("video: create, poll, download")
def _():
    video = client.videos.create_and_poll(**VIDEO, seconds="4", size="1280x720", poll_interval_ms=100)
    assert video.status == "completed"
    assert client.videos.download_content(video.id).read()


@example("video: list, retrieve")
def _():
    assert client.videos.retrieve(client.videos.list().data[0].id).object == "video"


@example("model: list")
def _():
    models = client.models.list()
    assert (models.object, models.data[0].object) == ("list", "model")


def hosted(**tool):
    return lambda: respond(tools=[tool])


stored = client.chat.completions
conversations = client.conversations
vector_stores = client.vector_stores
beta = client.beta

add_examples(
    {
        "chat: file by id": lambda: chat(messages=user([{"type": "file", "file": {"file_id": "file-abc123"}}])),
        "chat: audio output": lambda: chat(modalities=["text", "audio"], audio={"voice": "alloy", "format": "wav"}),
        "chat: store": lambda: assert_chat(chat(store=True)),
        "chat: list stored": lambda: stored.list(),
        "chat: get stored": lambda: stored.retrieve("chatcmpl-abc123"),
        "chat: list messages of stored": lambda: stored.messages.list("chatcmpl-abc123"),
        "chat: update stored": lambda: stored.update("chatcmpl-abc123", metadata={"topic": "demo"}),
        "chat: delete stored": lambda: stored.delete("chatcmpl-abc123"),
        "response: text": lambda: assert_response(respond(instructions="Talk like a pirate.")),
        "response: image by id": lambda: respond(input=user([{"type": "input_image", "file_id": "file-abc123"}])),
        "response: file by id": lambda: respond(input=user([{"type": "input_file", "file_id": "file-abc123"}])),
        "response: file search": hosted(type="file_search", vector_store_ids=["vs_1234567890"]),
        "response: code interpreter": hosted(type="code_interpreter", container={"type": "auto"}),
        "response: MCP": hosted(type="mcp", server_label="dmcp", server_url="https://dmcp.example/sse"),
        "response: image generation": hosted(type="image_generation"),
        "response: computer use": hosted(type="computer"),
        "response: shell": hosted(type="shell"),
        "response: apply patch": hosted(type="apply_patch"),
        "response: tool search": lambda: respond(tools=[{"type": "tool_search"}, *TOOLS]),
        "response: conversation": lambda: respond(conversation="conv_689667905b048191b4740501625afd94"),
        "response: prompt template": lambda: respond(prompt={"id": "pmpt_abc123", "version": "2"}),
        "response: background": lambda: respond(background=True),
        "response: retrieve": lambda: assert_response(client.responses.retrieve(respond().id)),
        "response: retrieve, streaming": lambda: list(client.responses.retrieve("resp_123", stream=True)),
        "response: cancel": lambda: client.responses.cancel("resp_123"),
        "conversation: create": lambda: conversations.create(metadata={"topic": "demo"}),
        "conversation: retrieve": lambda: conversations.retrieve("conv_123"),
        "conversation: update": lambda: conversations.update("conv_123", metadata={"topic": "new"}),
        "conversation: delete": lambda: conversations.delete("conv_123"),
        "conversation: list items": lambda: conversations.items.list("conv_123"),
        "conversation: create items": lambda: conversations.items.create("conv_123", items=user("Hello")),
        "image: variation": lambda: client.images.create_variation(image=PNG_FILE),
        "translation: default": lambda: client.audio.translations.create(file=WAV_FILE, model="whisper-1"),
        "voice: create": lambda: client.audio.voices.create(name="Mine", audio_sample=WAV_FILE, consent="cons_1"),
        "video: delete": lambda: client.videos.delete("video_123"),
        "video: remix": lambda: client.videos.remix("video_123", prompt="The cat takes a bow"),
        "video: edit": lambda: client.videos.edit(video=MP4_FILE, prompt="Make it night"),
        "video: extend": lambda: client.videos.extend(video=MP4_FILE, prompt="Go on", seconds="4"),
        "model: retrieve": lambda: client.models.retrieve(MODEL).object.index("model"),
        "model: delete": lambda: client.models.delete("ft:gpt-4o-mini:acemeco:suffix:abc123"),
        "moderation: create": lambda: client.moderations.create(model="omni-moderation-latest", input="Hello"),
        "file: upload": lambda: client.files.create(file=JSONL_FILE, purpose="batch"),
        "file: list": lambda: client.files.list(),
        "file: retrieve": lambda: client.files.retrieve("file-abc123"),
        "file: content": lambda: client.files.content("file-abc123"),
        "file: delete": lambda: client.files.delete("file-abc123"),
        "upload: create": lambda: client.uploads.create(
            bytes=100, filename="a.jsonl", mime_type="text/jsonl", purpose="fine-tune"
        ),
        "batch: create": lambda: client.batches.create(
            input_file_id="file-abc123", endpoint="/v1/chat/completions", completion_window="24h"
        ),
        "batch: list": lambda: client.batches.list(),
        "fine-tuning: create": lambda: client.fine_tuning.jobs.create(
            training_file="file-abc123", model="gpt-4o-mini-2024-07-18"
        ),
        "fine-tuning: list": lambda: client.fine_tuning.jobs.list(),
        "grader: run": lambda: client.fine_tuning.alpha.graders.run(grader={"type": "string_check"}, model_sample="a"),
        "vector store: create": lambda: vector_stores.create(name="Support FAQ"),
        "vector store: list": lambda: vector_stores.list(),
        "vector store: search": lambda: vector_stores.search("vs_abc123", query="What is the return policy?"),
        "vector store: add file": lambda: vector_stores.files.create("vs_abc123", file_id="file-abc123"),
        "realtime: client secret": lambda: client.realtime.client_secrets.create(session={"type": "realtime"}),
        "realtime: accept a call": lambda: client.realtime.calls.accept("rtc_123", type="realtime"),
        "assistant: create": lambda: beta.assistants.create(model=MODEL, name="Math Tutor"),
        "assistant: list": lambda: beta.assistants.list(),
        "thread: create": lambda: beta.threads.create(),
        "thread: add a message": lambda: beta.threads.messages.create("thread_abc", role="user", content="Hi"),
        "thread: run": lambda: beta.threads.runs.create("thread_abc", assistant_id="asst_abc"),
        "thread: create and run": lambda: beta.threads.create_and_run(assistant_id="asst_abc"),
        "chatkit: create a session": lambda: beta.chatkit.sessions.create(user="u", workflow={"id": "wf_abc"}),
        "eval: create": lambda: client.evals.create(data_source_config={"type": "logs"}, testing_criteria=[]),
        "eval: list": lambda: client.evals.list(),
        "container: create": lambda: client.containers.create(name="My Container"),
        "container: list": lambda: client.containers.list(),
        "skill: list": lambda: client.skills.list(),
    }
)


def describe_rejection(error):
    if isinstance(error, APIStatusError):
        return {"status": error.status_code, "message": error.message, "param": error.param}
    return None


run_examples(describe_rejection)
