/** A provider that reads every request and rejects it, so that nothing is charged. Runs in a separate thread. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { constants, setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';

// Providers have hosts of their own. On Linux this is the priority of this thread alone.
setPriority(constants.priority.PRIORITY_LOW);

const server = createServer((received, response) => {
  received.resume().once('end', () => {
    response.writeHead(400, { 'content-type': 'application/json' });
    response.end('{"error":{"message":"rejected","type":"invalid_request_error"}}');
  });
});
server.listen(0, '127.0.0.1', () => parentPort?.postMessage((server.address() as AddressInfo).port));
