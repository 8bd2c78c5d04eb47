"""Runs examples and prints the outcome of each as a line of JSON: {"name", "outcome", ...}."""

import json
import os
import traceback

_examples = {}


def example(name):
    """Registers a function, which raises an error if the result is not the documented one."""

    def register(function):
        _examples[name] = function
        return function

    return register


def add_examples(examples):
    _examples.update(examples)


def run_examples(describe_rejection):
    """Runs the examples in EXAMPLES. `describe_rejection` returns the status, the message and the parameter of an error
    with which the gateway rejected a request; None for any other error."""
    for name in json.loads(os.environ["EXAMPLES"]):
        print(json.dumps({"name": name, **_run(name, describe_rejection)}), flush=True)


def _run(name, describe_rejection):
    if name not in _examples:
        return {"outcome": "missing"}
    try:
        _examples[name]()
        return {"outcome": "works"}
    except Exception as error:
        rejection = describe_rejection(error)
        return {"outcome": "rejected", **rejection} if rejection else {"outcome": "failed", "message": traceback.format_exc()}
