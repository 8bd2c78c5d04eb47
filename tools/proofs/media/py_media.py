"""Generates and edits images, generates videos and speech, and transcribes recordings, mostly with OpenAI's client for
Python. Saves the output files in the directory OUT, where a decoder opens them."""

import json
import os
import pathlib
import time
import urllib.request

from openai import OpenAI

API = os.environ["GATEWAY_URL"]
KEY = os.environ["API_KEY"]
RECORDINGS = pathlib.Path(os.environ["RECORDINGS"])
OUT = pathlib.Path(os.environ["OUT"])
EXTENSIONS = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "video/mp4": "mp4", "video/webm": "webm"}
VIDEO_WITHIN_SECONDS = 60

client = OpenAI(base_url=API + "/v1", api_key=KEY, max_retries=0)


def listed(path):
    with urllib.request.urlopen(API + path) as answer:
        return json.load(answer)["data"]


def call(path, body=None):
    headers = {"authorization": "Bearer " + KEY, "content-type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(API + path, data, headers)) as answer:
        return answer.status, json.load(answer)


def fetched(item):
    """Downloads a file without a credential: its URL is signed."""
    with urllib.request.urlopen(item["url"]) as answer:
        assert answer.headers["content-type"] == item["content_type"], (answer.headers["content-type"], item)
        return answer.read()


def kept(name, media_type, content):
    OUT.joinpath(name.replace("/", "_") + "." + EXTENSIONS[media_type]).write_bytes(content)


def images():
    for model in listed("/v1/models?type=image"):
        if not model["capabilities"]["text_to_image"] or model["capabilities"]["requires_image"]:
            continue
        for wanted in ("png", "jpeg", "webp"):
            made = client.images.generate(
                model=model["id"], prompt="A coin on a ledger", extra_body={"output_format": wanted, "size": "1:1"}
            )
            for i, item in enumerate(made.model_dump()["data"]):
                kept(f"image-{model['id']}-{wanted}-{i}", item["content_type"], fetched(item))


def edits():
    picture = next(OUT.glob("image-*.png"))
    for model in listed("/v1/models?type=image"):
        if not model["capabilities"]["edit"]:
            continue
        made = client.images.edit(model=model["id"], image=picture.open("rb"), prompt="The same, in gold")
        item = made.data[0]
        import base64

        kept(f"edit-{model['id']}", item.model_dump()["content_type"], base64.b64decode(item.b64_json))


def videos():
    for model in listed("/v1/models?type=video"):
        if model["id"].endswith("-i2v"):
            continue
        status, job = call("/v1/videos", {"model": model["id"], "prompt": "A coin rolls"})
        assert (status, job["status"]) == (202, "pending"), job
        until = time.monotonic() + VIDEO_WITHIN_SECONDS
        while status == 202:
            assert time.monotonic() < until, job
            time.sleep(0.2)
            status, job = call("/v1/videos/" + job["id"])
        assert job["status"] == "completed", job
        kept("video-" + model["id"], job["data"]["content_type"], fetched(job["data"]))


def speech():
    voices = listed("/v1/audio/voices")
    for model in listed("/v1/audio/models"):
        if model["type"] != "tts":
            continue
        voice = next(each["id"] for each in voices if each["model_id"] == model["id"])
        with client.audio.speech.with_streaming_response.create(
            model=model["id"], voice=voice, input="Every coin that comes in is written down."
        ) as answer:
            OUT.joinpath(f"speech-{model['id']}.mp3".replace("/", "_")).write_bytes(answer.read())


def transcriptions():
    for recording in sorted(RECORDINGS.iterdir()):
        for model in ("nova-3", "nova-2"):
            said = client.audio.transcriptions.create(model=model, file=recording.open("rb"))
            assert said.text, recording
    recording = next(RECORDINGS.glob("*.mp3"))
    for shape in ("json", "text", "srt", "vtt", "verbose_json"):
        said = client.audio.transcriptions.create(model="nova-3", file=recording.open("rb"), response_format=shape)
        if shape in ("srt", "vtt"):
            OUT.joinpath("subtitles." + shape).write_text(said)
        if shape == "verbose_json":
            assert said.duration > 0 and said.segments, said


for each in (images, edits, videos, speech, transcriptions):
    each()
    print(each.__name__, "done")
