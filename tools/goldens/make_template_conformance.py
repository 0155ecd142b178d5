#!/usr/bin/env python3
"""Golden values for tests/text: templates rendered by jinja2 exactly as transformers sets it up.

    make_template_conformance.py TEMPLATES tests/text/data [FULL]

TEMPLATES is a folder of public models' chat templates (shared/data/templates); they are named here, not copied: of each rendering the file keeps
the number of bytes and the 64-bit FNV-1a hash. Snippets (template_snippets.py) are kept whole. FULL, where given, gets the whole renderings.
"""
import datetime
import json
import pathlib
import sys

import jinja2
from transformers.utils.chat_template_utils import _compile_jinja_template

from template_snippets import SNIPPETS, V

NOW = 1721997296  # 2024-07-26 12:34:56 UTC

ENV = _compile_jinja_template("").environment
ENV.globals["strftime_now"] = lambda form: datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).replace(tzinfo=None).strftime(form)
del ENV.globals["lipsum"]  # random text


def raise_exception(message):
    error = jinja2.exceptions.TemplateError(message)
    error.raised = True
    raise error


ENV.globals["raise_exception"] = raise_exception


def render(source, variables):
    try:
        template = ENV.from_string(source)
    except Exception as error:  # jinja2's own, and Python's for what it compiles to
        return {"syntax": str(error)}
    try:
        return {"output": template.render(**variables)}
    except Exception as error:  # whatever the template provokes
        return {"raised" if hasattr(error, "raised") else "error": str(error)}


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Weather of a place; \"now\" <only> & 'today' é",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "The city"}, "days": {"type": "integer", "default": 1},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "tags": {"type": "array", "items": {"type": "string"}}}, "required": ["city"]},
    "return": {"type": "object", "description": "what it is like"}}}
ADD = {"type": "function", "function": {"name": "add", "description": "Adds", "parameters": {
    "type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}}}

SYSTEM = {"role": "system", "content": "  You are terse.\n"}
USER = {"role": "user", "content": "  What is the weather in Zürich? 你好 🙂 "}
REPLY = {"role": "assistant", "content": "Sunny.\nAnd <b>warm</b> & 'dry'. "}
AGAIN = {"role": "user", "content": "And tomorrow?"}
THOUGHT = {"role": "assistant", "content": "<think>\nLet me see.\n</think>\n\nRain."}
REASONED = {"role": "assistant", "content": "Rain.", "reasoning_content": "Let me see.\n", "thinking": "Let me see."}


def call(arguments, **extra):
    return {"role": "assistant", **extra, "tool_calls": [{"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}]}


RESULT = {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "{\"sky\": \"clear\"}"}
TWO_CALLS = {"role": "assistant", "content": "", "tool_calls": [
    {"id": "call00001", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Bern", "days": 2, "tags": ["a"], "flag": True, "no": None}}},
    {"id": "call00002", "type": "function", "function": {"name": "add", "arguments": {"a": 1.5, "b": 1e20}}}]}
RESULT_2 = {"role": "tool", "tool_call_id": "call00002", "name": "add", "content": "3"}
DICT_ARGS = {"city": "Genève", "days": 3}

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
INPUTS = {
    "user": {"messages": [USER]},
    "user_open": {"messages": [USER], "add_generation_prompt": True},
    "system": {"messages": [SYSTEM, USER], "add_generation_prompt": True},
    "turns": {"messages": [USER, REPLY, AGAIN], "add_generation_prompt": True},
    "system_turns": {"messages": [SYSTEM, USER, REPLY, AGAIN, REPLY], "add_generation_prompt": False},
    "thought": {"messages": [SYSTEM, USER, THOUGHT, AGAIN, THOUGHT, AGAIN], "add_generation_prompt": True},
    "reasoned": {"messages": [USER, REASONED, AGAIN, REASONED], "add_generation_prompt": False},
    "thinking_off": {"messages": [USER], "add_generation_prompt": True, "enable_thinking": False, "thinking": False},
    "thinking_on": {"messages": [SYSTEM, USER], "add_generation_prompt": True, "enable_thinking": True, "thinking": True, "reasoning_effort": "high"},
    "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}], "add_generation_prompt": True},
    "tools": {"messages": [SYSTEM, USER], "tools": [WEATHER, ADD], "add_generation_prompt": True},
    "tool_text": {"messages": [USER, call("{\"city\": \"Bern\"}", content=""), RESULT], "tools": [WEATHER], "add_generation_prompt": True},
    "tool_dict": {"messages": [SYSTEM, USER, call(DICT_ARGS, content="Let me look."), RESULT, REPLY, AGAIN], "tools": [WEATHER, ADD], "add_generation_prompt": True},
    "tool_none": {"messages": [USER, call(DICT_ARGS, content=None), RESULT, REPLY], "tools": [WEATHER]},
    "tool_absent": {"messages": [USER, call(DICT_ARGS), RESULT], "tools": [WEATHER], "add_generation_prompt": True},
    "tool_two": {"messages": [USER, TWO_CALLS, RESULT, RESULT_2], "tools": [WEATHER, ADD], "add_generation_prompt": True},
    "tool_untold": {"messages": [USER, TWO_CALLS, RESULT, RESULT_2, REPLY]},
    "documents": {"messages": [USER], "documents": [{"doc_id": 1, "title": "T", "text": "Some text."}], "add_generation_prompt": True},
    "wrong_order": {"messages": [REPLY, USER]},
    "two_users": {"messages": [USER, AGAIN]},
    "late_system": {"messages": [USER, SYSTEM]},
    "unknown_role": {"messages": [{"role": "wizard", "content": "x"}]},
    "empty": {"messages": []},
    "nothing": {},
}


def main():
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    full = {}
    shared = []
    for path in sorted(folder.glob("*.jinja")):
        source = path.read_text()
        for name, variables in INPUTS.items():
            result = render(source, {**TOKENS, **variables})
            full[f"{path.name} {name}"] = result
            if "output" in result:
                data = result["output"].encode()
                result = {"bytes": len(data), "fnv1a": fnv(data)}
            elif "raised" not in result:
                result = {kind: "" for kind in result}
            shared.append({"template": path.name, "input": name, **result})
    snippets = []
    for source, variables in SNIPPETS:
        own = {} if variables is V else {"variables": variables}
        snippets.append({"source": source, **own, **render(source, variables)})
    golden = {"now": NOW, "variables": V, "tokens": TOKENS, "inputs": INPUTS, "shared": shared, "snippets": snippets}
    with open(out / "template_conformance.json", "w") as file:
        # One case a line, so that a change shows as one.
        file.write("{\n")
        for at, (key, value) in enumerate(golden.items()):
            end = "," if at + 1 < len(golden) else ""
            if isinstance(value, list):
                lines = ",\n".join(json.dumps(item, ensure_ascii=False) for item in value)
                file.write(f"{json.dumps(key)}: [\n{lines}\n]{end}\n")
            else:
                file.write(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}{end}\n")
        file.write("}\n")
    if len(sys.argv) > 3:
        pathlib.Path(sys.argv[3]).write_text(json.dumps(full, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    main()
