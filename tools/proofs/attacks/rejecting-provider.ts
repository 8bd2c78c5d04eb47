/**
 * A provider that reads every request and rejects it, so that nothing is charged. Only Responses are accepted, at the
 * price of one token: they are then stored. Runs in a separate thread.
 */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { constants, setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';

const REJECTED = '{"error":{"message":"rejected","type":"invalid_request_error"}}';
const RESPONSE = JSON.stringify({
  id: 'resp_worst',
  object: 'response',
  status: 'completed',
  output: [
    {
      type: 'message',
      id: 'msg_worst',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'Hello', annotations: [] }],
    },
  ],
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
});

// Providers have hosts of their own. On Linux this is the priority of this thread alone.
setPriority(constants.priority.PRIORITY_LOW);

const isAccepted = ({ url }: IncomingMessage) => url?.endsWith('/responses') === true;

const server = createServer((received, response) => {
  received.resume().once('end', () => {
    response.writeHead(isAccepted(received) ? 200 : 400, { 'content-type': 'application/json' });
    response.end(isAccepted(received) ? RESPONSE : REJECTED);
  });
});
server.listen(0, '127.0.0.1', () => parentPort?.postMessage((server.address() as AddressInfo).port));
