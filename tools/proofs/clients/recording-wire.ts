/** A line between a client and the gateway that is listened in on: nothing is changed by it. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request and its answer, as they went over the line. */
export interface RecordedExchange {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** The request's body, parsed; undefined where there was none, or no JSON. */
  readonly sent: unknown;
  readonly status: number;
  readonly streamed: boolean;
  readonly answer: string;
}

export class RecordingWire {
  readonly exchanges: RecordedExchange[] = [];

  private constructor(
    private readonly server: Server,
    private readonly target: string,
  ) {}

  /** @param target the gateway's address, without a path */
  static async open(target: string): Promise<RecordingWire> {
    const server = createServer();
    const wire = new RecordingWire(server, target);
    server.on('request', (incoming, outgoing) => void wire.pass(incoming, outgoing));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return wire;
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

  private async pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await bytesOf(incoming).catch(() => undefined);
    if (!body) return;
    const { url: path = '/', method = 'GET', headers } = incoming;
    const asked = { method, headers: { ...headers, host: new URL(this.target).host } };
    const onward = request(`${this.target}${path}`, asked, (answer) => {
      const { statusCode: status = 502 } = answer;
      outgoing.writeHead(status, answer.headers);
      const pieces: Buffer[] = [];
      answer.on('data', (piece: Buffer) => pieces.push(piece));
      answer.once('close', () => {
        const streamed = String(answer.headers['content-type']).startsWith('text/event-stream');
        const answered = Buffer.concat(pieces).toString();
        this.exchanges.push({ method, path, headers, sent: parsed(body), status, streamed, answer: answered });
      });
      answer.pipe(outgoing);
    });
    // A client that leaves leaves the gateway too.
    outgoing.once('close', () => onward.destroy());
    onward.on('error', () => outgoing.destroy()).end(body);
  }
}

async function bytesOf(incoming: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece);
  return Buffer.concat(pieces);
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

const ENDS = ['data: [DONE]', 'event: response.completed', 'event: message_stop'];

/** Whether a stream came to its end. */
export function isComplete({ answer, streamed }: RecordedExchange): boolean {
  return streamed && ENDS.some((end) => answer.includes(end));
}

/** Whether the request is one that costs something. */
export function isPaid({ method, path }: RecordedExchange): boolean {
  return method === 'POST' && /\/(chat\/completions|completions|responses|messages|embeddings)(\?|$)/.test(path);
}

/** What tools returned, in whichever protocol it goes back to the model, as JSON. */
export function toolResults({ sent }: RecordedExchange): readonly string[] {
  const { messages = [], input = [] } = (sent ?? {}) as Readonly<Record<string, unknown>>;
  return [...listOf(messages), ...listOf(input)].flatMap((item) => {
    const { role, type, content } = (item ?? {}) as Readonly<Record<string, unknown>>;
    if (role === 'tool' || role === 'function' || /_call_output$/.test(String(type))) return [JSON.stringify(item)];
    const blocks = listOf(content) as readonly { readonly type?: unknown }[];
    return blocks.filter((block) => block?.type === 'tool_result').map((block) => JSON.stringify(block));
  });
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
