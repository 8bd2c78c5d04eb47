"""Streams that break: the client must raise an error for each."""

import json
import os


def expect_errors(read, error=Exception):
    """
    Calls `read` with each prompt whose stream breaks. `read` must stream a chat with it to the end. An error of
    another class than `error` ends the script.
    """
    for number, prompt in enumerate(json.loads(os.environ.get("INTERRUPTED_PROMPTS", "[]")), 1):
        try:
            read(prompt)
        except error:
            continue
        raise AssertionError(f"stream {number} ended without an error")
