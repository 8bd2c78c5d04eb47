"""The library of the command `llm`, over chats and Responses: complete, streaming with usage, a tool, a schema."""

import json
import os
from pathlib import Path

import llm
from interrupted_streams import expect_errors
from pydantic import BaseModel

user_dir = Path.home() / "llm"
user_dir.mkdir(exist_ok=True)
os.environ["LLM_USER_PATH"] = str(user_dir)
NAMES = ["openai/gpt-5-mini", "anthropic/claude-haiku-4.5", "openai/gpt-oss-120b"]
COMMON = {
    "api_base": os.environ["GATEWAY_URL"] + "/v1",
    "api_key_name": "gateway",
    "supports_tools": True,
    "supports_schema": True,
}
models = [
    {"model_id": f"{name}-{api}", "model_name": name, "responses": api == "responses", **COMMON}
    for name in NAMES
    for api in ["chat", "responses"]
]
# JSON is valid YAML.
(user_dir / "extra-openai-models.yaml").write_text(json.dumps(models))

KEY = {"key": os.environ["API_KEY"]}
WORDS = "Hello [[sandbox tokens=3]]"
SAID = "every coin that"


class Place(BaseModel):
    city: str
    days: int


def forecast(city: str) -> str:
    """Returns the forecast of a city."""
    return os.environ["TOOL_RESULT"]


for name in NAMES[:2]:
    for api in ["chat", "responses"]:
        model = llm.get_model(f"{name}-{api}")
        for stream in [False, True]:
            response = model.prompt(WORDS, stream=stream, **KEY)
            assert ("".join(response), response.usage().output) == (SAID, 3)
            question = "Weather? [[sandbox tool=forecast]]"
            assert model.chain(question, tools=[forecast], stream=stream, **KEY).text().startswith("every coin")
        assert Place.model_validate_json(model.prompt("Where?", schema=Place, **KEY).text())


def read(model, prompt):
    response = model.prompt(prompt, tools=[forecast], **KEY)
    response.text()
    # Over Responses, llm raises no error if a response failed. It only keeps no response then.
    if response.response_json is None:
        raise RuntimeError("The response is incomplete")


for api in ["chat", "responses"]:
    expect_errors(lambda prompt: read(llm.get_model(f"openai/gpt-oss-120b-{api}"), prompt))
