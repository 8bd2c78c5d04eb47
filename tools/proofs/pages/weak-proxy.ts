/**
 * An unprotected proxy with an API key on loopback: it allows every preflight, and sends a paid request for every other
 * request of any origin. An attack that does not spend money through this proxy tests nothing.
 */
import { createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';

const ANYONE = {
  'access-control-allow-origin': '*',
  'access-control-allow-headers': '*, authorization, content-type, x-api-key',
  'access-control-allow-methods': '*',
  'access-control-allow-private-network': 'true',
};

/** @param api the URL of the gateway */
export async function startWeakProxy(api: string, key: string): Promise<Server> {
  const sendPaidRequest = async () => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
    const messages = [{ role: 'user', content: '[[sandbox tokens=1]]' }];
    const body = JSON.stringify({ model: 'openai/gpt-5-nano', messages });
    const response = await fetch(`${api}/v1/chat/completions`, { method: 'POST', headers, body });
    return response.text();
  };
  const server = createServer((request, response) => {
    request.resume();
    if (request.method === 'OPTIONS') return void response.writeHead(204, ANYONE).end();
    void sendPaidRequest().then(
      (text) => response.writeHead(200, { ...ANYONE, 'content-type': 'application/json' }).end(text),
      () => response.writeHead(502, ANYONE).end(), // the page gets no text
    );
  });
  server.on('upgrade', (_, socket: Socket) => {
    socket.on('error', () => undefined);
    void sendPaidRequest().finally(() => socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
