/** A line to the outside world that is listened in on: what the product sends to upstreams, and nothing changed by it. */
import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { World } from './world.ts';

export interface Received {
  readonly path: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  readonly body: any;
}

export class Wiretap {
  readonly received: Received[] = [];
  /** Where everything really goes, without a path. */
  target = '';

  private constructor(private readonly server: Server) {}

  static async open(): Promise<Wiretap> {
    const server = createServer();
    const tap = new Wiretap(server);
    server.on('request', async (incoming, outgoing) => {
      const pieces: Buffer[] = [];
      for await (const piece of incoming) pieces.push(piece);
      const bytes = Buffer.concat(pieces);
      const { url: path = '/', method, headers } = incoming;
      tap.received.push({ path, body: JSON.parse(bytes.toString()) });
      const onward = request(`${tap.target}${path}`, { method, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      });
      onward.on('error', () => outgoing.destroy()).end(bytes);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return tap;
  }

  /** Settings with which a product's calls of models go through here. */
  get settings(): Readonly<Record<string, string>> {
    const url = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    return {
      OPENAI_BASE_URL: `${url}/openai/v1`,
      ANTHROPIC_BASE_URL: `${url}/anthropic`,
      OPENROUTER_BASE_URL: `${url}/openrouter/v1`,
      GROQ_BASE_URL: `${url}/groq/v1`,
      DEEPINFRA_BASE_URL: `${url}/deepinfra/v1`,
    };
  }

  /** Returns what was received since the last call. */
  since(): readonly Received[] {
    return this.received.splice(0);
  }

  async close(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }
}

export interface TappedWorld {
  readonly tap: Wiretap;
  readonly world: World;
  close(): Promise<void>;
}

/** A world whose calls of models are listened in on. */
export async function openTapped(): Promise<TappedWorld> {
  const tap = await Wiretap.open();
  const world = await World.open(tap.settings);
  tap.target = world.sandbox;
  const close = async () => {
    await world.close();
    await tap.close();
  };
  return { tap, world, close };
}
