"""Golden prompts of openai-harmony 0.0.8. Writes test/golden/harmony.json.

    python test/golden/make_harmony.py TOKENIZER

TOKENIZER is gpt-oss's tokenizer.json (or .gz); the library's own vocabulary file is made from it, so nothing is downloaded.
Everything in the cases is invented. `text` is the decoded prompt, `ids` its sha256 (decimal ids joined by commas) and count.
Needs `pip install openai-harmony==0.0.8`.
"""

import base64
import gzip
import hashlib
import json
import os
import random
import sys
import tempfile
from pathlib import Path


def vocabulary(path: str, folder: str) -> None:
    """o200k_base.tiktoken, byte for byte (the library checks its sha256)."""
    raw = Path(path).read_bytes()
    vocab = json.loads(gzip.decompress(raw) if path.endswith(".gz") else raw)["model"]["vocab"]
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in plain]
    decode = {chr(byte): byte for byte in plain} | {chr(256 + n): byte for n, byte in enumerate(rest)}
    ranks = sorted((rank, bytes(decode[char] for char in token)) for token, rank in vocab.items())
    lines = (base64.b64encode(token) + b" " + str(rank).encode() + b"\n" for rank, token in ranks)
    Path(folder, "o200k_base.tiktoken").write_bytes(b"".join(lines))


folder = tempfile.mkdtemp()
vocabulary(sys.argv[1], folder)
os.environ["TIKTOKEN_ENCODINGS_BASE"] = folder

from openai_harmony import (  # noqa: E402 -- reads the variable when it is imported
    Author,
    ChannelConfig,
    Conversation,
    DeveloperContent,
    HarmonyEncodingName,
    Message,
    ReasoningEffort,
    RenderConversationConfig,
    Role,
    SystemContent,
    TextContent,
    ToolDescription,
    load_harmony_encoding,
)

encoding = load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)


def parts(content):
    if content is None:
        return [""]
    return [content] if isinstance(content, str) else [part["text"] for part in content]


def conversation(messages, tools, options):
    system = SystemContent.new().with_conversation_start_date(options["date"])
    if "model_identity" in options:
        system = system.with_model_identity(options["model_identity"])
    if "knowledge_cutoff" in options:
        system = system.with_knowledge_cutoff(options["knowledge_cutoff"])
    if "reasoning_effort" in options:
        system = system.with_reasoning_effort(ReasoningEffort[options["reasoning_effort"].upper()])
    if "valid_channels" in options:
        system = system.with_channel_config(ChannelConfig.require_channels(options["valid_channels"]))
    out = [Message.from_role_and_content(Role.SYSTEM, system)]
    developer = DeveloperContent.new()
    rest = messages
    leading = options.get("system_as", "developer") == "developer" and messages[0]["role"] in ("system", "developer")
    if leading:
        developer = developer.with_instructions("".join(parts(messages[0].get("content"))))
        rest = messages[1:]
    if tools:
        described = [tool.get("function", tool) for tool in tools]
        developer = developer.with_function_tools(
            [ToolDescription.new(t["name"], t["description"], t.get("parameters")) for t in described]
        )
    if leading or tools:
        out.append(Message.from_role_and_content(Role.DEVELOPER, developer))
    names = {call["id"]: call["function"]["name"] for m in rest for call in m.get("tool_calls", [])}
    for message in rest:
        role = message["role"]
        texts = parts(message.get("content"))
        if role == "assistant":
            if message.get("reasoning"):
                out.append(Message.from_role_and_content(Role.ASSISTANT, message["reasoning"]).with_channel("analysis"))
            calls = message.get("tool_calls", [])
            if "".join(texts):
                channel = "commentary" if calls else "final"
                out.append(Message.from_role_and_content(Role.ASSISTANT, "".join(texts)).with_channel(channel))
            for call in calls:
                arguments = call["function"]["arguments"]
                text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
                out.append(
                    Message.from_role_and_content(Role.ASSISTANT, text)
                    .with_channel("commentary")
                    .with_recipient(f"functions.{call['function']['name']}")
                    .with_content_type("json")
                )
        elif role == "tool":
            name = f"functions.{names.get(message.get('tool_call_id'), message.get('name', ''))}"
            author = Author.new(Role.TOOL, name)
            result = Message.from_author_and_content(author, "".join(texts))
            out.append(result.with_channel("commentary").with_recipient("assistant"))
        else:
            out.append(Message.from_role_and_contents(Role(role), [TextContent(text=text) for text in texts]))
    return Conversation.from_messages(out)


WORDS = "ledger harbour Ärger 北京 🙂👩‍💻 e\u0301 don't 12345 <|end|> <|start|>assistant \t  \n\n } \" \\ 0.5 x=1; return".split(" ")


def text(rng, most=8):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, most)))


def schema(rng, depth=0):
    kind = rng.choice(["string", "enum", "number", "integer", "boolean", "array", "object", "types", "oneOf", "anyOf", "none"])
    if depth > 2 and kind in ("array", "object", "oneOf"):
        kind = "string"
    out = {}
    if kind == "enum":
        out = {"type": "string", "enum": [rng.choice(["a", "b c", "d\"e"]) for _ in range(rng.randint(0, 3))]}
    elif kind == "array":
        out = {"type": "array"}
        if rng.random() < 0.8:
            out["items"] = schema(rng, depth + 1)
    elif kind == "object":
        out = {"type": "object"}
        if rng.random() < 0.9:
            names = rng.sample(["path", "10", "2", "größe", "z", "mode", "note"], rng.randint(0, 4))
            out["properties"] = {name: schema(rng, depth + 1) for name in names}
            if rng.random() < 0.6:
                out["required"] = [name for name in names if rng.random() < 0.5]
    elif kind == "types":
        out = {"type": rng.choice([["integer", "null"], ["string", "number"], [], [3]])}
    elif kind == "oneOf":
        out = {"oneOf": [schema(rng, depth + 1) for _ in range(rng.randint(0, 3))]}
    elif kind == "anyOf":
        out = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    elif kind != "none":
        out = {"type": kind}
    chance = lambda p: rng.random() < p  # noqa: E731
    if chance(0.4):
        out["description"] = rng.choice(["what it is", "two\nlines", "same", "same", "quote \" and ü"])
    if chance(0.15):
        out["title"] = "A Title"
    if chance(0.3):
        values = ["a", "", "x\ny", 1, 1.0, -0.0, 2.50, 1e-7, 1.5e-5, 0.0001, 1e16, 123456789.125, 1e22, 9007199254740993]
        out["default"] = rng.choice([*values, -(2**63), 2**64, True, None, [], [1, "é\n"], {"k": {"a": []}, "b": 0.1}])
    if chance(0.15):
        out["examples"] = rng.choice([[], ["one", 2, "three"], "no list"])
    if chance(0.15):
        out["nullable"] = rng.choice([True, True, False])
    return out


def tools(rng):
    out = []
    for index in range(rng.randint(0, 3)):
        inner = {"name": f"tool_{index}", "description": rng.choice(["Does it.", "", "First\nsecond\r\n\nlast\n", "one\r"])}
        if rng.random() < 0.85:
            inner["parameters"] = {**schema(rng, 1), "type": "object"} if rng.random() < 0.2 else parameters(rng)
        out.append({"type": "function", "function": inner} if rng.random() < 0.8 else inner)
    return out


def parameters(rng):
    names = rng.sample(["path", "10", "2", "limit", "filter", "kind"], rng.randint(0, 4))
    return {"type": "object", "properties": {n: schema(rng) for n in names}, "required": names[: rng.randint(0, len(names))]}


def messages(rng):
    out = []
    if rng.random() < 0.7:
        out.append({"role": rng.choice(["system", "developer"]), "content": text(rng)})
    count = 0
    for _ in range(rng.randint(1, 3)):
        content = text(rng)
        out.append({"role": "user", "content": content if rng.random() < 0.8 else [{"type": "text", "text": t} for t in (content, text(rng, 2))]})
        for _ in range(rng.randint(0, 3)):
            message = {"role": "assistant", "content": text(rng) if rng.random() < 0.3 else rng.choice(["", None])}
            if rng.random() < 0.7:
                message["reasoning"] = text(rng)
            message["tool_calls"] = []
            results = []
            for _ in range(rng.randint(1, 2)):
                count += 1
                arguments = rng.choice(["{\"a\":1}", "not json", {"path": text(rng, 2), "n": [1, 2.5]}, {}])
                call = {"id": f"c{count}", "type": "function", "function": {"name": f"tool_{rng.randint(0, 2)}", "arguments": arguments}}
                message["tool_calls"].append(call)
                results.append({"role": "tool", "tool_call_id": f"c{count}", "content": text(rng)})
            out += [message, *results]
        if rng.random() < 0.6:
            final = {"role": "assistant", "content": text(rng)}
            if rng.random() < 0.5:
                final["reasoning"] = text(rng)
            out.append(final)
    return out


def options(rng):
    out = {"date": rng.choice(["2026-01-01", "2025-09-05"]), "keep": rng.random() < 0.3}
    for key, values in {
        "reasoning_effort": ["low", "medium", "high"],
        "model_identity": ["You are Somebody Else."],
        "knowledge_cutoff": ["2025-01"],
        "valid_channels": [["analysis", "final"], []],
        "system_as": ["developer", "system"],
    }.items():
        if rng.random() < 0.3:
            out[key] = rng.choice(values)
    return out


cases = []
rng = random.Random(int(os.environ.get("HARMONY_SEED", "1")))
for index in range(int(os.environ.get("HARMONY_CASES", "60"))):
    chat, schemas, chosen = messages(rng), tools(rng), options(rng)
    ids = encoding.render_conversation_for_completion(
        conversation(chat, schemas, chosen), Role.ASSISTANT, RenderConversationConfig(auto_drop_analysis=not chosen["keep"])
    )
    cases.append(
        {
            "context": json.dumps({"messages": chat, "tools": schemas}),
            "options": chosen,
            "text": encoding.decode(ids),
            "count": len(ids),
            "sha256": hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest(),
        }
    )
out = Path(os.environ.get("HARMONY_OUT", Path(__file__).parent / "harmony.json"))
head = {"source": "openai-harmony 0.0.8 (render_conversation_for_completion)"}
out.write_text(json.dumps({**head, "cases": cases}, indent=0, ensure_ascii=True) + "\n")
print(f"{out}: {len(cases)} cases")
