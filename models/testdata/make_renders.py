"""Writes renders.json: what Python's jinja2, set up as transformers sets it up, makes of the templates beside it."""

import json
import pathlib

from transformers.utils.chat_template_utils import render_jinja_template

HERE = pathlib.Path(__file__).parent
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "description": "Finds <b>things</b> & 'stuff' – ünïcode",
            "parameters": {
                "type": "object",
                "properties": {"q": {"type": "string", "enum": ["a", "b\n"]}, "limit": {"type": "number", "default": 1e-07}},
                "required": ["q"],
                "examples": [1.0, 2, -0.5, 1e16, None, True, {}, []],
            },
        },
    }
]
CHATS = {
    "plain": [{"role": "user", "content": "  Hi there! \n"}],
    "system": [
        {"role": "system", "content": "Be \"brief\".  \n"},
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "\n Two, three, four, and five. \n"},
        {"role": "user", "content": "<|im_end|> 日本 😀"},
        {"role": "assistant", "content": "<think>hm</think>\n\nYes."},
    ],
    "tools": [
        {"role": "user", "content": "Look"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"type": "function", "function": {"name": "look_up", "arguments": {"q": "ü", "limit": 2.5, "Z": [1, 2]}}}
            ],
        },
        {"role": "tool", "content": "{\"found\": 3}"},
        {"role": "assistant", "content": "Three."},
    ],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]}],
    "odd": [{"role": "user", "content": "x"}, {"role": "narrator", "content": "y"}],
}
rows = []
for template in ["chatml_tools", "headers", "pipes"]:
    source = (HERE / f"{template}.jinja").read_text()
    for name, chat in CHATS.items():
        for tools in [None, TOOLS]:
            for prompt in [False, True]:
                row = {"template": template, "chat": name, "tools": tools is not None, "prompt": prompt}
                try:
                    texts, spans = render_jinja_template(
                        [chat],
                        tools=tools,
                        chat_template=source,
                        return_assistant_tokens_mask=True,
                        add_generation_prompt=prompt,
                        bos_token="<s>",
                        eos_token="</s>",
                        enable_thinking=False,
                    )
                    row["text"] = texts[0]
                    # Character positions there, byte positions here.
                    row["spans"] = [[len(texts[0][:at].encode()) for at in span] for span in spans[0]]
                except Exception as error:
                    row["error"] = type(error).__name__
                rows.append(row)
result = {"chats": CHATS, "tools": TOOLS, "renders": rows}
(HERE / "renders.json").write_text(json.dumps(result, indent=1) + "\n")
print(len(rows), "renders,", sum("error" in row for row in rows), "errors")
