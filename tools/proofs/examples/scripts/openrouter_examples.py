"""The usual examples of OpenRouter's documentation."""

import base64
import json
import os
import time

from openrouter import OpenRouter
from openrouter.errors import OpenRouterError
from run_examples import add_examples, example, run_examples

PNG, PDF, WAV = (os.environ[name] for name in ("PNG", "PDF", "WAV"))
MODEL = "openai/gpt-5-mini"
CLAUDE = "anthropic/claude-haiku-4.5"
OPEN_MODEL = "openai/gpt-oss-120b"

client = OpenRouter(api_key=os.environ["API_KEY"], server_url=os.environ["GATEWAY_URL"] + "/v1", retry_config=None)


def user(content):
    return [{"role": "user", "content": content}]


def send(**body):
    return client.chat.send(**{"model": MODEL, "messages": user("Hello"), **body})


def text(value):
    return {"type": "text", "text": value}


FILE = {"type": "file", "file": {"filename": "document.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}}
ASKS_FILE = user([text("What is it about?"), FILE])
PARAMETERS = {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}
WEATHER = {"name": "get_weather", "description": "The weather", "parameters": PARAMETERS}
TOOLS = [{"type": "function", "function": WEATHER}]
ASKS_WEATHER = "The weather in Paris? [[sandbox tool=get_weather]]"


def assert_chat(completion):
    assert completion.object == "chat.completion"
    assert completion.choices[0].finish_reason == "stop"
    assert completion.choices[0].message.content
    assert completion.usage.total_tokens > 0


def assert_searched(completion):
    """The client drops the citations, so the cost shows that the web was searched."""
    assert_chat(completion)
    assert completion.usage.cost > 0.01


@example("chat: streaming")
def _():
    chunks = list(send(stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert chunks[-1].usage.total_tokens > 0


@example("chat: image input")
def _():
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    assert_chat(send(messages=user([text("What is in this image?"), image])))


@example("chat: audio input")
def _():
    audio = {"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}}
    assert_chat(send(model="google/gemini-3.1-pro", messages=user([text("Transcribe this"), audio])))


@example("chat: tools")
def _():
    message = send(messages=user(ASKS_WEATHER), tools=TOOLS).choices[0].message
    [call] = message.tool_calls
    assert call.function.name == "get_weather"
    result = {"role": "tool", "tool_call_id": call.id, "content": "18 °C"}
    assert_chat(send(messages=[*user(ASKS_WEATHER), message, result], tools=TOOLS))


@example("chat: tools, streaming")
def _():
    chunks = list(send(messages=user(ASKS_WEATHER), tools=TOOLS, stream=True))
    calls = [call for chunk in chunks if chunk.choices for call in chunk.choices[0].delta.tool_calls or []]
    assert calls[0].function.name == "get_weather"


@example("chat: structured output")
def _():
    schema = {"name": "weather", "strict": True, "schema": {**PARAMETERS, "additionalProperties": False}}
    completion = send(response_format={"type": "json_schema", "json_schema": schema})
    assert json.loads(completion.choices[0].message.content)["location"]


@example("chat: reasoning")
def _():
    messages = user("Which is bigger, 9.11 or 9.9? [[sandbox tokens=30 reasoning=10]]")
    assert send(model=CLAUDE, messages=messages, reasoning={"effort": "high"}).choices[0].message.reasoning


@example("chat: fallback models")
def _():
    assert "claude-haiku" in send(model="example/unknown", models=[CLAUDE, MODEL]).model


@example("chat: provider preferences")
def _():
    assert_chat(send(provider={"sort": "price", "allow_fallbacks": True, "data_collection": "deny"}))


@example("chat: web search tool")
def _():
    messages = user("News? [[sandbox tool=web_search]]")
    assert_searched(send(messages=messages, tools=[{"type": "openrouter:web_search"}]))


@example("chat: usage accounting")
def _():
    usage = send().usage
    assert usage.cost > 0
    assert usage.prompt_tokens_details.cached_tokens == 0


@example("chat: prompt caching")
def _():
    content = [{**text("A long book"), "cache_control": {"type": "ephemeral"}}]
    assert_chat(send(model=CLAUDE, messages=[{"role": "system", "content": content}, *user("Hello")]))


@example("response: create")
def _():
    assert client.responses.send(model=MODEL, input="Hello").status == "completed"


@example("response: streaming")
def _():
    assert list(client.responses.send(model=MODEL, input="Hello", stream=True))[-1].type == "response.completed"


@example("embedding: create")
def _():
    request = {"model": "openai/text-embedding-3-small", "input": "The quick brown fox"}
    assert len(client.embeddings.generate(**request).data[0].embedding) == 1_536


@example("video: generate, poll, download")
def _():
    job = client.video_generation.generate(model="openai/sora-2", prompt="A cat playing a piano", duration=4)
    while job.status in ("pending", "in_progress"):
        time.sleep(0.1)
        job = client.video_generation.get_generation(job_id=job.id)
    assert job.status == "completed"
    assert client.video_generation.get_video_content(job_id=job.id).read()


@example("speech: create")
def _():
    request = {"model": "openai/tts-1", "input": "Hello", "voice": "alloy", "response_format": "mp3"}
    assert client.tts.create_speech(**request).read()


@example("transcription: form")
def _():
    file = {"file_name": "speech.wav", "content": base64.b64decode(WAV), "content_type": "audio/wav"}
    assert client.stt.create_transcription_multipart(model="openai/whisper-1", file=file).text


@example("model: list")
def _():
    assert len(client.models.list().result.data) > 10


@example("model: endpoints")
def _():
    assert client.endpoints.list(author="openai", slug="gpt-oss-120b").data.endpoints


add_examples(
    {
        "chat: default": lambda: assert_chat(send()),
        "chat: PDF input": lambda: assert_chat(send(messages=ASKS_FILE)),
        "chat: PDF plugin": lambda: send(
            messages=ASKS_FILE, plugins=[{"id": "file-parser", "pdf": {"engine": "cloudflare-ai"}}]
        ),
        "chat: provider order": lambda: assert_chat(
            send(model=OPEN_MODEL, provider={"order": ["groq", "deepinfra"]})
        ),
        "chat: zero data retention": lambda: assert_chat(send(model=OPEN_MODEL, provider={"zdr": True})),
        "chat: variant :nitro": lambda: assert_chat(send(model=f"{OPEN_MODEL}:nitro")),
        "chat: variant :floor": lambda: assert_chat(send(model=f"{OPEN_MODEL}:floor")),
        "chat: free variant": lambda: assert_chat(send(model="openai/gpt-oss-20b:free")),
        "chat: web plugin": lambda: assert_searched(send(plugins=[{"id": "web", "max_results": 3}])),
        "chat: variant :online": lambda: assert_searched(send(model=f"{CLAUDE}:online")),
        "chat: date and time tool": lambda: send(tools=[{"type": "openrouter:datetime"}]),
        "chat: context compression": lambda: send(plugins=[{"id": "context-compression"}]),
        "chat: auto router": lambda: send(model="openrouter/auto"),
        "chat: preset": lambda: send(model="@preset/email-copywriter"),
        "chat: image output": lambda: send(modalities=["image", "text"]),
        "embedding: list models": lambda: client.embeddings.list_models(),
        "image: generate": lambda: client.images.generate(model="openai/gpt-image-1.5", prompt="A sunset"),
        "image: list models": lambda: client.images.list_models(),
        "video: list models": lambda: client.video_generation.list_videos_models(),
        "transcription: JSON": lambda: client.stt.create_transcription(
            model="openai/whisper-1", input_audio={"data": WAV, "format": "wav"}
        ),
        "rerank: create": lambda: client.rerank.rerank(
            model="cohere/rerank-v3.5", query="capital", documents=["a", "b"]
        ),
        "model: get": lambda: client.models.get(author="openai", slug="gpt-5-mini"),
        "model: count": lambda: client.models.count(),
        "model: list zdr endpoints": lambda: client.endpoints.list_zdr_endpoints(),
        "provider: list": lambda: client.providers.list(),
        "credits: get": lambda: client.credits.get_credits(),
        "generation: get": lambda: client.generations.get_generation(id="gen-1234567890"),
        "key: current": lambda: client.api_keys.get_current_key_metadata(),
        "key: list": lambda: client.api_keys.list(),
        "key: create": lambda: client.api_keys.create(name="My key", limit=50),
        "key: update": lambda: client.api_keys.update(hash="abc123", disabled=True),
        "key: delete": lambda: client.api_keys.delete(hash="abc123"),
        "preset: list": lambda: client.presets.list(),
        "guardrail: list": lambda: client.guardrails.list(),
        "workspace: list": lambda: client.workspaces.list(),
        "file: list": lambda: client.files.list(),
    }
)


def describe_rejection(error):
    if not isinstance(error, OpenRouterError) or error.status_code < 400:
        return None
    body = json.loads(error.body)["error"]
    return {"status": error.status_code, "message": body["message"], "param": body.get("param")}


run_examples(describe_rejection)
