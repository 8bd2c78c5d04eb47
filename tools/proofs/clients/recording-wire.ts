/**
 * A proxy between a client and the gateway or the local proxy. It records every exchange that gets a response, and
 * changes only the header `host`.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request with its parsed body, and its response with the body as text. */
export interface RecordedExchange {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** The parsed request body; undefined if it is empty or not JSON. */
  readonly sent: unknown;
  readonly status: number;
  readonly streamed: boolean;
  readonly response: string;
}

const IDLE_CONNECTION_TIMEOUT_MS = 120_000;

export class RecordingWire {
  readonly exchanges: RecordedExchange[] = [];

  private constructor(
    private readonly server: Server,
    private readonly target: string,
  ) {}

  /** @param target the URL of the gateway or the local proxy, without a path */
  static async open(target: string): Promise<RecordingWire> {
    // A slow client may use a connection after more than Node's default of 5 s, which would interrupt its next request.
    const server = createServer({ keepAliveTimeout: IDLE_CONNECTION_TIMEOUT_MS });
    const recorder = new RecordingWire(server, target);
    server.on('request', (incoming, outgoing) => void recorder.forward(incoming, outgoing));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return recorder;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }

  private async forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await readBody(incoming).catch(() => undefined); // the client disconnected
    if (!body) return;
    const { url: path = '/', method = 'GET', headers } = incoming;
    const options = { method, headers: { ...headers, host: new URL(this.target).host } };
    const onward = request(`${this.target}${path}`, options, (response) => {
      const { statusCode: status = 502 } = response;
      outgoing.writeHead(status, response.headers);
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('close', () => {
        // An interrupted response is interrupted for the client too, after it was sent what has arrived.
        if (!response.complete) outgoing.socket?.destroySoon();
        const streamed = String(response.headers['content-type']).startsWith('text/event-stream');
        const responseBody = Buffer.concat(chunks).toString();
        this.exchanges.push({ method, path, headers, sent: parseJson(body), status, streamed, response: responseBody });
      });
      response.pipe(outgoing);
    });
    // When the client disconnects, the forwarded request is aborted too.
    outgoing.once('close', () => onward.destroy());
    onward.on('error', () => outgoing.destroy()).end(body);
  }
}

async function readBody(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined; // not JSON
  }
}

const ENDS = ['data: [DONE]', 'event: response.completed', 'event: message_stop'];

/** Whether the response is a complete stream. */
export function isComplete({ response, streamed }: RecordedExchange): boolean {
  return streamed && ENDS.some((end) => response.includes(end));
}

/** Whether the request is for something that is charged if it is served: a completion, embeddings or an image. */
export function isPaid({ method, path }: RecordedExchange): boolean {
  return (
    method === 'POST' &&
    /\/(chat\/completions|completions|responses|messages|embeddings|images\/generations)(\?|$)/.test(path)
  );
}

/** Returns the tool results in a request as JSON, for all protocols. */
export function listToolResults({ sent }: RecordedExchange): readonly string[] {
  const { messages = [], input = [] } = (sent ?? {}) as Readonly<Record<string, unknown>>;
  return [...toArray(messages), ...toArray(input)].flatMap((item) => {
    const { role, type, content } = (item ?? {}) as Readonly<Record<string, unknown>>;
    if (role === 'tool' || role === 'function' || /_call_output$/.test(String(type))) return [JSON.stringify(item)];
    const blocks = toArray(content) as readonly { readonly type?: unknown }[];
    return blocks.filter((block) => block?.type === 'tool_result').map((block) => JSON.stringify(block));
  });
}

function toArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
