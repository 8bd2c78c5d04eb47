// An MCP server with one tool, over standard input and output with one JSON-RPC message per line.
import { createInterface } from 'node:readline';

const TOOL = {
  name: 'forecast',
  description: 'Returns the forecast of a city',
  inputSchema: { type: 'object', properties: { city: { type: 'string', enum: ['Ur'] } }, required: ['city'] },
};

const METHODS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'proof', version: '1.0.0' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools: [TOOL] }),
  'tools/call': () => ({ content: [{ type: 'text', text: process.env.TOOL_RESULT ?? 'proof-42' }] }),
};

const respond = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params = {} } = JSON.parse(line);
  if (id === undefined) continue;
  const run = METHODS[method];
  if (run) respond({ id, result: run(params) });
  else respond({ id, error: { code: -32601, message: `unknown method ${method}` } });
}
