#!/usr/bin/env python3
"""Makes tests/fuzz/corpus from the fixtures and examples of the tree, small and one idea a file.

    python3 tests/fuzz/make_corpus.py
"""

import json
import pathlib
import shutil
import struct

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUT = HERE / "corpus"


def write(target, name, content):
    folder = OUT / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def chat_templates():
    for file in sorted((ROOT / "tests/golden/chat/templates").glob("*.jinja")):
        write("chat_template", file.name, file.read_bytes())
    lines = (ROOT / "tests/golden/chat/constructs.txt").read_text().splitlines()
    for at in range(0, len(lines), 12):
        write("chat_template", f"constructs_{at:03}", "\n".join(lines[at:at + 12]))
    for at, line in enumerate(lines):
        if line.startswith(("{%", "{#")):
            write("chat_template", f"line_{at:03}", line)


def cluster_files():
    for file in sorted((ROOT / "config/examples").glob("*.toml")):
        write("cluster_file", file.name, file.read_bytes())


def frames():
    def header(kind, dtype=0, rows=0, columns=0, payload=0, tag=0):
        return struct.pack("<4sHBBQQQQIIQQQII", b"TRPE", 1, kind, dtype, 3, 9, 1, 0, rows, columns,
                           payload, 0, tag, 1, 2)
    write("frame", "hello", header(1, payload=16))
    write("frame", "goodbye", header(2))
    write("frame", "collective", header(3, rows=2, columns=8, payload=64, tag=7))
    write("frame", "rows", header(19, rows=4, columns=256, payload=4096))


def http_bodies():
    text = {"prompt": "In the", "max_tokens": 4, "temperature": 0.5, "top_p": 0.9, "top_k": -1,
            "min_p": 0.1, "seed": -3, "stop": ["a", "b"], "n": 2, "stream": True,
            "stream_options": {"include_usage": True}, "logprobs": 3, "logit_bias": {"5": -100},
            "frequency_penalty": 1, "presence_penalty": -1, "repetition_penalty": 1.1,
            "user": "u", "ignore_eos": True, "model": None, "suffix": ""}
    chat = {"messages": [{"role": "developer", "content": [{"type": "text", "text": "a"}]},
                         {"role": "user", "content": "b"}, {"role": "assistant"}],
            "max_completion_tokens": 1, "logprobs": True, "top_logprobs": 20,
            "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "none",
            "chat_template_kwargs": {"a": 1}, "response_format": {
                "type": "json_schema", "json_schema": {"name": "n", "schema": {"enum": ["x"]}}}}
    write("http_body", "text", b"\x00" + json.dumps(text).encode())
    write("http_body", "ids", b"\x00" + json.dumps({"prompt": [[1, 2], [3]]}).encode())
    write("http_body", "chat", b"\x01" + json.dumps(chat).encode())
    write("http_body", "mode", b"\x00" + json.dumps({
        "prompt": "a", "response_format": {"type": "json_object"}}).encode())
    write("http_body", "unknown", b"\x80" + json.dumps({"prompt": "a", "zzz": [{}]}).encode())
    write("http_body", "wrong", b"\x01" + json.dumps({"messages": {}, "n": 1e99}).encode())
    write("http_body", "deep", b"\x00" + b'{"prompt":' + b"[" * 100)
    write("http_body", "no_text", b'\x00{"prompt": "\xff\xed\xa0\x80"}')
    write("http_body", "tokenize", b"\x02" + json.dumps({
        "content": "a", "add_special": False, "with_pieces": True}).encode())
    write("http_body", "detokenize", b"\x03" + json.dumps({"tokens": [1, 4294967295]}).encode())


def schemas():
    weather = {"type": "object", "properties": {
        "place": {"type": "string", "maxLength": 12}, "days": {"type": "integer"},
        "units": {"enum": ["C", "F", None]}, "wind": {"anyOf": [{"type": "number"},
                                                                {"type": "null"}]},
        "spots": {"type": "array", "maxItems": 3, "items": {"$ref": "#/$defs/spot"}}},
        "required": ["place", "units"], "additionalProperties": False,
        "$defs": {"spot": {"type": "object", "properties": {"x": {"type": "number"}},
                           "required": ["x"]}}}
    tree = {"type": "object", "properties": {"v": {"type": ["integer", "null"]}, "next": {
        "oneOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#"}}]}},
        "required": ["v"]}
    write("json_schema", "weather", json.dumps(weather))
    write("json_schema", "tree", json.dumps(tree))
    write("json_schema", "any", "{}")
    write("json_schema", "tuple", json.dumps({"prefixItems": [{"const": {"a": [1.5]}}, True],
                                              "items": False, "minItems": 2}))
    write("json_schema", "text", json.dumps({"minLength": 2, "maxLength": 5}))
    write("json_schema", "map", json.dumps({"additionalProperties": {"type": "boolean"}}))


def safetensors():
    def file(header, data=b""):
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + data
    two = {"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
           "b": {"dtype": "BF16", "shape": [3], "data_offsets": [16, 22]},
           "__metadata__": {"format": "pt"}}
    write("safetensors", "two", file(two, bytes(22)))
    write("safetensors", "empty", file({}))
    write("safetensors", "scalar", file({"s": {"dtype": "I64", "shape": [],
                                               "data_offsets": [0, 8]}}, bytes(8)))
    write("safetensors", "pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:00\n")


def tokenizers():
    for folder in sorted((ROOT / "tests/golden/tokenizer").iterdir()):
        file = folder / "tokenizer.json"
        if file.exists() and file.stat().st_size < 40_000:
            write("tokenizer", folder.name, file.read_bytes())
    vocab = {chr(code): code - 32 for code in range(33, 127)}
    vocab |= {"\u0120": 0, "He": 100, "ll": 101, "Hell": 102, "\u0120w": 103}
    base = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [
        {"id": 110, "content": "<s>", "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True}],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                          "use_regex": True},
        "post_processor": None, "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "fuse_unk": False,
                  "byte_fallback": False, "ignore_merges": False, "vocab": vocab,
                  "merges": ["H e", "l l", "He ll", "\u0120 w"]}}
    write("tokenizer", "small", json.dumps(base))
    other = dict(base, pre_tokenizer={"type": "Split", "pattern": {"Regex": "\\s+|\\w+"},
                                      "behavior": "Isolated", "invert": False},
                 decoder={"type": "Sequence", "decoders": [
                     {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                     {"type": "ByteFallback"}, {"type": "Fuse"}]},
                 normalizer={"type": "Sequence", "normalizers": [
                     {"type": "Prepend", "prepend": "\u2581"},
                     {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]})
    write("tokenizer", "pieces", json.dumps(other))


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    for make in (chat_templates, cluster_files, frames, http_bodies, schemas, safetensors,
                 tokenizers):
        make()


if __name__ == "__main__":
    main()
