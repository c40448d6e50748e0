"""What every official Python client must see. Usage: python mcp_clients.py BASE_URL"""

import asyncio
import json
import sys
import urllib.request
import uuid

import fastmcp
import mcp

TOOLS = {"about_service", "get_download", "join_waitlist", "read_page"}
PAGES = {"home": "index", "about": "about", "privacy": "privacy", "developers": "developers", "contact": "contact"}


def text(result):
    (block,) = result.content
    assert block.type == "text", block
    return block.text


def structured(result):
    """A result that is no error and whose text is its structured content as JSON."""
    assert not result.is_error, result
    assert json.loads(text(result)) == result.structured_content, result
    return result.structured_content


async def expect_service(base, tools, call):
    assert {tool.name for tool in tools} == TOOLS and len(tools) == len(TOOLS), tools

    structured(await call("about_service", {}))

    for page, file in PAGES.items():
        result = await call("read_page", {"page": page})
        assert not result.is_error, result
        with urllib.request.urlopen(f"{base}/{file}.md") as served:
            assert text(result).encode() == served.read(), f"read_page {page} differs from /{file}.md"
    assert (await call("read_page", {"page": "nowhere"})).is_error

    where = await call("get_download", {})
    structured(where)
    assert f"{base}/#download" in text(where), "get_download does not name the download page"
    assert "/releases/" not in text(where), "get_download names a disk image"

    email = f"suite-{uuid.uuid4()}@example.org"
    assert structured(await call("join_waitlist", {"email": email, "source": "suites"}))["already"] is False
    assert structured(await call("join_waitlist", {"email": email}))["already"] is True
    refused = await call("join_waitlist", {"email": "not an address"})
    assert refused.is_error and text(refused), refused

    try:
        answer = await call("no_such_tool", {})
    except mcp.MCPError as error:
        assert error.code == -32602, error
    else:
        raise AssertionError(f"an unknown tool was answered with {answer}")


async def main(base):
    url = f"{base}/mcp"
    for mode in ("auto", "legacy"):
        async with mcp.Client(url, mode=mode) as client:
            assert client.protocol_version == "2025-11-25", client.protocol_version
            await expect_service(base, (await client.list_tools()).tools, client.call_tool)
    async with fastmcp.Client(url) as client:
        await expect_service(base, await client.list_tools(), client.call_tool_mcp)


asyncio.run(main(sys.argv[1]))
