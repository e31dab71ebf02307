# An MCP server that starts processes which do not want to end: one in its group, one in a session of
# its own whose parent is gone. Both hold its standard output and ignore signals.
import json
import os
import signal
import sys


def stay(ready):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.write(ready, b".")
    while True:
        signal.pause()


def leave():
    read, ready = os.pipe()
    if os.fork() == 0:
        stay(ready)
    parent = os.fork()
    if parent == 0:
        os.setsid()
        if os.fork() == 0:
            stay(ready)
        os._exit(0)
    os.waitpid(parent, 0)
    started = b""
    while len(started) < 2:
        started += os.read(read, 2)
    return "%d processes started" % len(started)


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "forks", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("leave", "exit")]}
    if method == "tools/call":
        if params["name"] == "exit":
            os._exit(3)
        return {"content": [{"type": "text", "text": leave()}]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    result = answer(message["method"], message.get("params", {}))
    reply.update({"result": result} if result is not None else {"error": {"code": -32601, "message": "unknown"}})
    print(json.dumps(reply), flush=True)
