"""Chat messages in the shapes that Parquet and JSON writers give them, and the text of their turns."""

from typing import Any


class MessageError(ValueError):
    """A message column that holds no conversation; the text says why."""


def read_messages(value: Any) -> list[dict[str, Any]]:
    """Messages as `[{"role": str, "content": str | [block, ...]}, ...]`.

    Reads a list of structs, or the struct of lists that `datasets` writes for a Sequence feature. Null keys that Arrow adds to
    content blocks are taken out: chat templates test for the presence of a key, and would render a text as an image.
    """
    if isinstance(value, dict) and isinstance(value.get("role"), list) and isinstance(value.get("content"), list):
        roles, contents = value["role"], value["content"]
        if len(roles) != len(contents):
            raise MessageError(f"has {len(roles)} roles and {len(contents)} contents")
        value = [{"role": role, "content": content} for role, content in zip(roles, contents, strict=True)]
    if not isinstance(value, list) or not value:
        raise MessageError("is not a list of messages")
    return [_message(message) for message in value]


def text_of(content: str | list[dict[str, Any]]) -> str:
    """The text of a turn: the string itself, or its text blocks joined."""
    if isinstance(content, str):
        return content
    return "".join(block["text"] for block in content if block["type"] == "text")


def conversation_of_pair(value: Any) -> tuple[str, str]:
    """(user turn, AD) of a pair's side, which is `[{user: prompt}, {assistant: AD}]` on the card."""
    messages = read_messages(value)
    roles = [message["role"] for message in messages]
    if roles != ["user", "assistant"]:
        named = ", ".join(role[:20] for role in roles[:6]) + (", ..." if len(roles) > 6 else "")
        raise MessageError(f"has the turns {named}; expected user, assistant")
    user, assistant = (text_of(message["content"]) for message in messages)
    return user, assistant


def image_paths(messages: list[dict[str, Any]]) -> list[str]:
    """Keyframe paths of a chat prompt's image blocks, in order."""
    return [
        block["image"]
        for message in messages
        if not isinstance(message["content"], str)
        for block in message["content"]
        if block["type"] == "image"
    ]


def _message(message: Any) -> dict[str, Any]:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise MessageError("holds a message without a role")
    content = message.get("content")
    if isinstance(content, str):
        return {"role": message["role"], "content": content}
    if isinstance(content, list) and all(isinstance(block, dict) for block in content):
        return {"role": message["role"], "content": [_block(block) for block in content]}
    raise MessageError(f"has a {message['role'][:20]} turn without text")


def _block(block: dict[str, Any]) -> dict[str, Any]:
    present = {key: item for key, item in block.items() if item is not None}
    kind = present.get("type")
    if kind not in ("text", "image"):
        raise MessageError("has a content block whose type is neither text nor image")
    if not isinstance(present.get(kind), str):
        raise MessageError(f"has a content block of type {kind} whose {kind} is no string")
    return present
