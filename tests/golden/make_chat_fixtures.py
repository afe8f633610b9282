#!/usr/bin/env python3
"""Makes tests/golden/chat/{expected,constructs}.json: what Jinja makes of chat templates.

    python3 -m venv venv && venv/bin/pip install jinja2==3.1.6
    venv/bin/python tests/golden/make_chat_fixtures.py

The reference is jinja2's immutable sandbox, set up as transformers.apply_chat_template sets it up.
The templates in tests/golden/chat/templates are written for these tests: each uses the constructs
of the template that the models of its name come with, with texts of our own, because the licences
of some do not allow a copy. constructs.txt holds one small template a line, one a construct.
"""

import datetime
import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.sandbox

OUT = pathlib.Path(__file__).resolve().parent / "chat"
NOW = datetime.datetime(2024, 7, 26, 9, 5, 3)


class Generation(jinja2.ext.Extension):
    """The `generation` blocks of transformers, without their marks."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_support"), [], [], body).set_lineno(line)

    def _support(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


ENVIRONMENT = jinja2.sandbox.ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
ENVIRONMENT.filters["tojson"] = tojson
ENVIRONMENT.globals["raise_exception"] = raise_exception
ENVIRONMENT.globals["strftime_now"] = lambda style: NOW.strftime(style)

ODD = ("\u00e9\u4f60\u597d \U0001f44d\U0001f3fd \u200b \\n \\ \" ' </s> {{ x }} {% y %} <|im_end|> "
       "&<>\t\x7f\u2028 \ufeff end ")

TOOLS = [
    {"type": "function",
     "function": {"name": "weather", "description": "Tells the weather of a place.",
                  "parameters": {"type": "object",
                                 "properties": {
                                     "place": {"type": "string",
                                               "description": "City \u2014 \"name\""},
                                     "days": {"type": "integer", "minimum": 1},
                                     "units": {"type": ["string", "null"]},
                                     "spots": {"type": "array",
                                               "items": {"type": "array",
                                                         "items": {"type": "number"}}},
                                     "more": {"type": "object",
                                              "additionalProperties": {"type": "boolean"}}},
                                 "required": ["place"]}}},
    {"type": "function",
     "function": {"name": "stop", "description": "Ends\nall.", "parameters":
                  {"type": "object", "properties": {}}, "return": {"type": "boolean"}}},
]


def say(role, content, **more):
    return {"role": role, "content": content, **more}


CALL = [{"type": "function", "id": "abcdefghi",
         "function": {"name": "weather", "arguments": {"place": "M\u00fcnchen", "days": 2, "x": 0.1,
                                                        "big": 1e22, "none": None, "yes": True}}}]
TWO_CALLS = CALL + [{"type": "function", "id": "123456789",
                     "function": {"name": "stop", "arguments": {}}}]

CASES = {
    "user": {"messages": [say("user", "Hello")]},
    "without_prompt": {"messages": [say("user", "Hello"), say("assistant", " Hi there. ")],
                       "add_generation_prompt": False},
    "system": {"messages": [say("system", "Be brief.\n"), say("user", "  Who are you? \n")]},
    "turns": {"messages": [say("system", "Be brief."), say("user", "One"), say("assistant", "1"),
                           say("user", "Two"), say("assistant", "2\n\n"), say("user", "Three")]},
    "two_users": {"messages": [say("user", "One"), say("user", "Two")]},
    "late_system": {"messages": [say("user", "One"), say("assistant", "1"), say("system", "Hm."),
                                 say("user", "Two")]},
    "odd": {"messages": [say("user", ODD), say("assistant", ODD + "\n"), say("user", "\n" + ODD)]},
    "empty": {"messages": [say("user", "")]},
    "nothing": {"messages": []},
    "tools": {"messages": [say("system", "Help."), say("user", "Will it rain?")], "tools": TOOLS},
    "tool_call": {"messages": [say("user", "Will it rain?"),
                               say("assistant", "", tool_calls=CALL),
                               say("tool", "no", tool_call_id="abcdefghi", name="weather"),
                               say("assistant", "It will not."), say("user", "Thanks")],
                  "tools": TOOLS},
    "two_calls": {"messages": [say("user", "Will it rain?"),
                               say("assistant", "Let me see.", tool_calls=TWO_CALLS),
                               say("tool", {"rain": False, "mm": [0.5, 1e-7]},
                                   tool_call_id="abcdefghi"),
                               say("tool", "done", tool_call_id="123456789")], "tools": TOOLS},
    "text_call": {"messages": [say("user", "x"), say("assistant", None, tool_calls=[
        {"function": {"name": "f", "arguments": "{\"a\": 1}"}}])]},
    "system_tools": {"messages": [say("system", "Help."), say("user", "Go"), say("assistant", "Ok"),
                                  say("user", "Now")],
                     "tools": TOOLS, "variables": {"tools_in_user_message": False}},
    "builtin": {"messages": [say("user", "Search"), say("assistant", "", tool_calls=[
        {"function": {"name": "brave_search", "arguments": {"query": "q", "n": "2"}}}])],
        "variables": {"builtin_tools": ["brave_search", "code_interpreter"],
                      "date_string": "1 Jan 2000"}},
    "thinking": {"messages": [say("user", "Why?"),
                              say("assistant", "<think>\nBecause.\n</think>\n\nSo."),
                              say("user", "And?"),
                              say("assistant", "Yes.", reasoning_content="\nHm.\n")]},
    "no_thinking": {"messages": [say("user", "Why?")], "variables": {"enable_thinking": False}},
    "parts": {"messages": [say("system", [{"type": "text", "text": "Be brief."}]),
                           say("user", [{"type": "image"}, {"type": "text", "text": " See? "}])]},
    "unknown_role": {"messages": [say("critic", "Bad.")]},
    "role_missing": {"messages": [{"content": "Hello"}]},
    "no_content": {"messages": [{"role": "user"}]},
    "long": {"messages": [say("user" if turn % 2 == 0 else "assistant", f"Turn {turn}")
                          for turn in range(61)]},
}

CONSTANTS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}

X = {"n": 7, "f": 2.5, "s": "Hello, W\u00f6rld", "l": [3, 1, 2], "d": {"b": 1, "a": {"c": [1, 2]}},
     "t": True, "z": None, "e": "", "m": [{"k": "x", "v": 2}, {"k": "y", "v": 1}, {"k": "X"}],
     "lines": "one\ntwo\r\n\nfour\n", "w": "  a  b \t c ", "u": "\u00c9\u00df \u4f60\u597d"}

# Templates of several lines, which constructs.txt cannot hold.
LONG = [
    "  {% if t %}  \n  a\n  {% endif %}  \n b\n",
    "  {%- if t -%}  \n  a  \n  {%- endif -%}  \n b\n\n",
    "  {%+ if t %}\n  a\n  {%+ endif +%}\nb",
    "a {% if t %}\nb {% endif %}\nc\n\n",
    "a\n   {# comment #}\nb\n   {{ n }}\n{{ n -}}  \n  b  {{- n }}",
    "{%- for x in l %}\n    {{- x }}\n    {%- if not loop.last %}, {% endif %}\n{%- endfor %}\n",
    "{% for x in l %}\n  {{ x }}\n{% endfor %}\nend\n",
    "{% for x in l %}\r\n  {{ x }}\r\n{% endfor %}\rend\r\n",
    "a\n\n  {% raw %}\n  {{ x }}\n  {% endraw %}\n  b",
    "a\n  {%- raw -%}\n  {{ x }}\n  {%- endraw -%}\n  b",
    "{% set x %}\n  a\n  {% if t %}\n  b\n  {% endif %}\n{% endset %}[{{ x }}]",
    "{{ n }}\n\n{% if t %}\n\n{% endif %}\n\n{{ n }}\n",
    "\n\n  {% if t %}x{% endif %}\n\n",
    "\t{% if t %}\n\tx\n\t{% endif %}\ty",
    "x  {# a #}  {# b #}\ny\n  {# c #}  {# d #}\nz",
    "{{ '\n' }}{{ 'a\nb' }}\n",
    "{% macro f(x) %}\n  {{ x }}\n{% endmacro %}\n{{ f(1) }}|{{ f(2) -}}\n|",
    "{{-1}} {{ -1 }} {{- 1 -}} {{+1}}",
    "{%if t%}a{%endif%}{%-if t-%} a {%-endif-%}{{n}}{{-n-}}",
    "{% if t %}{# c #}\n{% endif %}x{#- c #}\n\n",
    "a{% if t -%}\n\n  b{%- endif %}\n\nc",
    "a   {%- if t %}   b   {%- endif +%}\n   c",
]


def attempt(template, variables):
    try:
        return {"text": ENVIRONMENT.from_string(template).render(**variables)}
    except Exception as failure:  # what goes wrong is part of what is compared: that it does
        return {"error": type(failure).__name__ + ": " + str(failure)}


def main():
    expected = {}
    for file in sorted((OUT / "templates").glob("*.jinja")):
        template = file.read_bytes().decode()
        expected[file.stem] = {}
        for name, case in CASES.items():
            variables = {**CONSTANTS, "tools": case.get("tools"), "documents": None,
                         "add_generation_prompt": case.get("add_generation_prompt", True),
                         **case.get("variables", {}), "messages": case["messages"]}
            expected[file.stem][name] = attempt(template, variables)
    write("expected.json", {"now": NOW.isoformat(), "constants": CONSTANTS, "cases": CASES,
                            "expected": expected})
    lines = (OUT / "constructs.txt").read_bytes().decode().splitlines() + LONG
    write("constructs.json", {"variables": X, "constructs": [
        {"template": line, **attempt(line, X)} for line in dict.fromkeys(lines)]})


def write(name, content):
    (OUT / name).write_text(json.dumps(content, ensure_ascii=True, indent=1) + "\n")


if __name__ == "__main__":
    main()
