// A client of the TypeScript SDK for tests: `node agent.mjs PROGRAM ARGS...` starts a
// server and, for each line of JSON on standard input, {"tool", "args"}, calls a tool and
// prints what a client shows a model of its result, as JSON. {"offered"} prints the
// instructions and the tools.
import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'typescript-agent', version: '1' });
await client.connect(new StdioClientTransport({ command, args, stderr: 'inherit' }));

async function answer(request) {
  if (request.offered) {
    return JSON.stringify({ instructions: client.getInstructions(), tools: (await client.listTools()).tools });
  }
  try {
    const result = await client.callTool({ name: request.tool, arguments: request.args });
    if (result.structuredContent && !result.isError) return JSON.stringify(result.structuredContent);
    return result.content.map((part) => part.text ?? `[${part.type}]`).join('\n');
  } catch (error) {
    return `MCP error: ${error.message}`;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await answer(JSON.parse(line))));
}
await client.close();
