#!/usr/bin/env python3
"""Renders chat templates with jinja2 as transformers sets it up: make_template_goldens.py TEMPLATE_DIR > tests/text/data/template_goldens.json

Snippets are kept with their source; files of TEMPLATE_DIR by name (the test reads them beside the checkout). An entry's `error` is the template's own
message when it raises one, and "" for any other failure.
"""
import datetime
import json
import pathlib
import sys

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime(2026, 7, 4, 12, 30)


class Generation(Extension):
    """The {% generation %} marker: its inside renders as it is."""

    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


class Raised(Exception):
    pass


def environment():
    def raise_exception(message):
        raise Raised(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda f: NOW.strftime(f)
    return env


def render(source, variables):
    try:
        return {"output": environment().from_string(source).render(**variables)}
    except Raised as error:
        return {"error": str(error)}
    except Exception:  # noqa: BLE001 - any failure is a golden of failure
        return {"error": ""}


SNIPPETS = [
    "a {{ 1 + 2 * 3 - 4 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 1.5 + 1 }} {{ 3.0 }} {{ 1e20 }} {{ 0.1 + 0.2 }}",
    "{{ 'a' ~ 1 ~ none ~ true ~ 1.5 ~ [1, 'x', none] ~ {'k': \"it's\"} }}",
    "{% if a %}\n  yes\n{% elif b %}\n  b\n{% else %}\n  no\n{% endif %}\nend\n",
    "  {% for x in xs %}\n    {{ loop.index }}/{{ loop.length }} {{ x }}{% if not loop.last %},{% endif %}\n  {% else %}\nnone\n  {% endfor %}\n",
    "{%- for k, v in d.items() -%} {{ k }}={{ v }} {%- endfor -%}",
    "{% for x in xs if x > 1 %}{{ loop.first }}{{ loop.revindex0 }}{{ x }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
    "{% for x in xs %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% set ns = namespace(n=0, found=false) %}{% for x in xs %}{% set ns.n = ns.n + x %}{% set y = x %}{% endfor %}{{ ns.n }}{{ y is defined }}{{ ns.found }}",
    "{% macro m(a, b='d', c=none) %}[{{ a }}|{{ b }}|{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, c=3) }}{{ m('x', 'y', 'z') }}{{ m() }}",
    "{% macro outer() %}<{{ caller() }}>{% endmacro %}{% call outer() %}in{% endcall %}",
    "{% set x %}  block {{ 1 }} {% endset %}[{{ x }}]{% set z | upper | trim %} abc {% endset %}[{{ z }}]{% filter upper %}low{% endfilter %}",
    "{{ s.strip() }}|{{ s.lstrip() }}|{{ s.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ s.split() }}|{{ 'a,b,,c'.split(',') }}|{{ 'a,b,c'.split(',', 1) }}|{{ 'a,b,c'.rsplit(',', 1) }}",
    "{{ 'Hello World'.upper() }}{{ 'Hello'.lower() }}{{ 'hello world'.title() }}{{ 'hELLO'.capitalize() }}{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith(('x', 'c')) }}{{ 'aXbX'.replace('X', '-') }}{{ 'abcb'.find('b') }}{{ 'abcb'.count('b') }}",
    "{{ '你好 wörld 😀'[0] }}{{ '你好 wörld 😀'[-1] }}{{ '你好 wörld 😀'[1:4] }}{{ '你好'|length }}{{ 'abc'[::-1] }}{{ xs[1:] }}{{ xs[:-1] }}{{ xs[::2] }}{{ xs[-2:] }}",
    "{{ xs|first }}{{ xs|last }}{{ xs|join('-') }}{{ xs|length }}{{ xs|sum }}{{ xs|max }}{{ xs|min }}{{ xs|reverse|list }}{{ [3, 1, 2]|sort }}{{ ['b', 'A', 'c']|sort }}{{ [1, 2, 1]|unique|list }}",
    "{{ u|default('d') }}{{ ''|default('e', true) }}{{ none|default('f') }}{{ u }}{{ u is defined }}{{ u is undefined }}{{ none is none }}{{ u or 'x' }}",
    "{{ d|tojson }}{{ d|tojson(indent=2) }}{{ 'a\"\\n<é>'|tojson }}{{ [1, 2.5, none, true, {}]|tojson }}{{ []|tojson(indent=4) }}{{ 1.0|tojson }}",
    "{{ people|map(attribute='name')|join(', ') }}{{ people|selectattr('age', 'gt', 30)|map(attribute='name')|list }}{{ people|rejectattr('name', 'equalto', 'Al')|list|length }}{{ xs|select('odd')|list }}{{ xs|reject('even')|list }}{{ ['a', 'b']|map('upper')|list }}",
    "{{ 1 if true else 2 }}{{ 'x' if false }}{{ 1 < 2 < 3 }}{{ 1 < 2 > 3 }}{{ not true }}{{ true and false or true }}{{ 2 in xs }}{{ 9 not in xs }}{{ 'ell' in 'hello' }}{{ 'k' in d }}",
    "{{ 3 is odd }}{{ 4 is even }}{{ 'a' is string }}{{ d is mapping }}{{ xs is iterable }}{{ xs is sequence }}{{ 1 is number }}{{ 1.0 is float }}{{ 1 is integer }}{{ true is boolean }}{{ true is true }}{{ 6 is divisibleby 3 }}{{ 1 is eq 1 }}{{ 1 is not eq 2 }}{{ 2 is in xs }}",
    "{# comment #}\n  {# another #}  \nx {#- strip -#} y\n{{- ' z' -}}  \n w",
    "a\n\n{%- if true %}\n b\n{%- endif %}\n\nc",
    "a  {%+ if true %}b{% endif +%}\nc",
    "{% raw %}{{ not this }} {% nor %}{% endraw %} ok",
    "{% generation %}inside{{ 1 }}{% endgeneration %}",
    "{{ raise_exception('bad ' ~ 1) }}",
    "{{ u.x }}",
    "{{ 'a' + 1 }}",
    "{{ d.k }}{{ d['k'] }}{{ d.missing }}{{ d.get('k') }}{{ d.get('no', 'fb') }}{{ d.keys()|list }}{{ d.values()|list }}{{ d|dictsort }}{{ d|items|list }}",
    "{{ 'line1\nline2\n\nline4'|indent }}|{{ 'a\nb'|indent(2, true) }}|{{ 'abc'|trim }}|{{ ' x '|trim }}|{{ '42'|int + 1 }}|{{ 'x'|int }}|{{ '1.5'|float }}|{{ 3.7|int }}|{{ 2.5|round }}|{{ 2.567|round(2) }}|{{ -3|abs }}",
    "{{ range(5)|list }}{{ range(1, 10, 3)|list }}{{ range(3, 0, -1)|list }}{{ dict(a=1, b='x') }}{% for i in range(2) %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{{ strftime_now('%d %b %Y') }}{{ strftime_now('%Y-%m-%d') }}",
    "{{ 'it\\'s' }}{{ \"tab\\tnl\\n\\u00e9\\x41\" }}{{ 'a' 'b' }}{{ ('x', 'y')[1] }}{{ (1, 2) == (1, 2) }}{{ [1] + [2] }}{{ 'ab' * 2 }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set t = (1, 2, 3) %}{{ t|length }}{% for a, b in [[1, 2], [3, 4]] %}{{ a + b }}{% endfor %}",
    "{% for m in messages %}{% if loop.index0 % 2 == 0 %}U{% else %}A{% endif %}{{ m['content'] | trim }}{{ m.role }}{% endfor %}",
    "{{ x.y.z if x is defined and x.y is defined else 'none' }}{{ (xs|length - 1) }}{{ xs|length > 2 }}{{ -xs|first }}{{ not u }}{{ (1, ) }}",
    "{% for a in [1, 2] %}{% for b in [3, 4] %}{{ loop.index }}{{ loop.depth }}{% endfor %}{{ loop.index }}{% endfor %}",
    "{{ 'a\r\nb' }}x\r\ny",
    "{{ ''.join(['a', 'b']) }}{{ ', '.join(xs|map('string')) }}{{ 'a b'.split(' ')[-1] }}{{ 'a<b>&\"'|e }}{{ 'Ünï'.upper() }}{{ 'abc'.isdigit() }}{{ '12'.isdigit() }}",
]

VARIABLES = {
    "a": 0, "b": 1, "xs": [1, 2, 3, 4], "d": {"k": "v", "n": 1, "l": [1, {"x": None}]}, "s": "  hi  there ",
    "people": [{"name": "Al", "age": 40}, {"name": "Bo", "age": 20}, {"name": "Cy", "age": 31}],
    "messages": [{"role": "user", "content": " one "}, {"role": "assistant", "content": "two"}],
}

TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "description": "City's name"}, "unit": {"type": "string", "enum": ["c", "f"]}}, "required": ["city"]}}}
SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "What's the weather in 上海? 😀"}
ASSISTANT = {"role": "assistant", "content": "Sunny.\n"}
CALL = {"role": "assistant", "content": "", "tool_calls": [{"id": "abc123def", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "上海"}}}]}
RESULT = {"role": "tool", "name": "get_weather", "tool_call_id": "abc123def", "content": "22 degrees"}
CHATS = {
    "single": {"messages": [USER], "add_generation_prompt": True},
    "no_prompt": {"messages": [USER, ASSISTANT], "add_generation_prompt": False},
    "system": {"messages": [SYSTEM, USER], "add_generation_prompt": True},
    "turns": {"messages": [SYSTEM, USER, ASSISTANT, {"role": "user", "content": "And tomorrow?"}], "add_generation_prompt": True},
    "tools": {"messages": [SYSTEM, USER], "add_generation_prompt": True, "tools": [TOOL]},
    "tool_result": {"messages": [USER, CALL, RESULT], "add_generation_prompt": True, "tools": [TOOL]},
    "assistant_first": {"messages": [ASSISTANT, USER], "add_generation_prompt": True},
    "unknown_role": {"messages": [{"role": "wizard", "content": "x"}], "add_generation_prompt": True},
}


def main():
    out = {"now": int(NOW.timestamp()), "variables": VARIABLES, "snippets": [], "chats": CHATS, "files": {}}
    for source in SNIPPETS:
        out["snippets"].append({"source": source, **render(source, VARIABLES)})
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.jinja")):
        out["files"][path.name] = {
            name: render(path.read_text(), {"bos_token": "<s>", "eos_token": "</s>", **chat}) for name, chat in CHATS.items()
        }
    json.dump(out, sys.stdout, ensure_ascii=False, indent=1)


main()
