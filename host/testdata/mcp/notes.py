# An MCP server without a library: JSON-RPC, one message a line.
import json
import sys

TOOLS = [{
    "name": "count_words",
    "description": "Counts the words of a file.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}]


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}}
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        try:
            with open(params["arguments"]["path"], encoding="utf-8") as file:
                return {"content": [{"type": "text", "text": "%d words" % len(file.read().split())}]}
        except OSError as e:
            return {"content": [{"type": "text", "text": str(e)}], "isError": True}
    raise KeyError(method)


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        reply["result"] = answer(message["method"], message.get("params", {}))
    except KeyError as e:
        reply["error"] = {"code": -32601, "message": "unknown: %s" % e}
    print(json.dumps(reply), flush=True)
