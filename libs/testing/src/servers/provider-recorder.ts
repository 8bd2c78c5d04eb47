/** A server with the protocols of OpenAI and Anthropic that records what it receives. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

const USAGE = { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 };
const CHAT = { id: 'x', created: 1, model: 'm' };
const COMPLETION = {
  ...CHAT,
  object: 'chat.completion',
  usage: USAGE,
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hi' } }],
};
const CHUNKS = [
  { choices: [{ index: 0, delta: { role: 'assistant', content: 'Hi' } }] },
  { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] },
  { choices: [], usage: USAGE },
].map((chunk) => `data: ${JSON.stringify({ ...CHAT, object: 'chat.completion.chunk', ...chunk })}\n\n`);

const BILLED = { input_tokens: 5, output_tokens: 1 };
const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: BILLED,
};
const MESSAGE_EVENTS = [
  { type: 'message_start', message: MESSAGE },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: BILLED },
  { type: 'message_stop' },
].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);

export class ProviderRecorder {
  /** Paths and headers of the requests so far. */
  readonly received: [path: string, headers: IncomingHttpHeaders][] = [];

  private constructor(private readonly server: Server) {
    server.on('request', async (request, response) => {
      const { url = '', headers } = request;
      this.received.push([url, headers]);
      const body = await text(request);
      const isMessages = url.endsWith('/messages');
      if (body !== '' && JSON.parse(body).stream === true) {
        response.setHeader('content-type', 'text/event-stream');
        response.end(isMessages ? MESSAGE_EVENTS.join('') : `${CHUNKS.join('')}data: [DONE]\n\n`);
        return;
      }
      response.setHeader('content-type', 'application/json');
      const message = { ...MESSAGE, content: [{ type: 'text', text: 'Hi' }], stop_reason: 'end_turn' };
      response.end(JSON.stringify(isMessages ? message : COMPLETION));
    });
  }

  static async open(): Promise<ProviderRecorder> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new ProviderRecorder(server);
  }

  get address(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.server.close();
  }
}
