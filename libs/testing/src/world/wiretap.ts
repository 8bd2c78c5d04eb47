/** A transparent proxy that records what the gateway sends to providers. */
import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readProviders } from '#catalogue';
import { TestWorld } from './world.ts';

export interface CapturedRequest {
  readonly path: string;
  /** Parsed JSON, or text if the body is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read bodies of every schema
  readonly body: any;
}

/** Protocols of providers that generate content from their input. */
const GENERATIVE_PROTOCOLS: ReadonlySet<string> = new Set([
  'openai',
  'anthropic',
  'fal',
  'google',
  'deepgram',
  'elevenlabs',
]);

/** Paths of the requests that check keys. They are sent at any time, so they are neither recorded nor forwarded. */
const KEY_CHECK_PATHS: ReadonlySet<string> = new Set(
  readProviders().flatMap(({ sandboxPath, keyCheck }) => (keyCheck === undefined ? [] : [sandboxPath + keyCheck])),
);

export class Wiretap {
  readonly received: CapturedRequest[] = [];
  /** URL to which requests are forwarded, without a path. */
  target = '';

  private constructor(private readonly server: Server) {}

  static async open(): Promise<Wiretap> {
    const server = createServer();
    const tap = new Wiretap(server);
    server.on('request', async (incoming, outgoing) => {
      const chunks: Buffer[] = [];
      for await (const chunk of incoming) chunks.push(chunk);
      const bytes = Buffer.concat(chunks);
      const { url: path = '/', method, headers } = incoming;
      if (KEY_CHECK_PATHS.has(path)) return outgoing.end('{}');
      tap.received.push({ path, body: parseBody(bytes.toString('latin1')) });
      const onward = request(`${tap.target}${path}`, { method, headers }, (response) => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers);
        response.pipe(outgoing);
      });
      onward.on('error', () => outgoing.destroy()).end(bytes);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return tap;
  }

  /** Settings that route the gateway's calls to models through this proxy. */
  get settings(): Readonly<Record<string, string>> {
    const url = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    const providers = readProviders().filter(({ protocol }) => GENERATIVE_PROTOCOLS.has(protocol));
    return Object.fromEntries(providers.map(({ env, sandboxPath }) => [`${env}_BASE_URL`, `${url}${sandboxPath}`]));
  }

  /** Returns what was received since the last call. */
  takeReceived(): readonly CapturedRequest[] {
    return this.received.splice(0);
  }

  async close(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }
}

function parseBody(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'latin1').toString());
  } catch {
    return text; // not JSON
  }
}

export interface TappedWorld {
  readonly tap: Wiretap;
  readonly world: TestWorld;
  close(): Promise<void>;
}

/** Opens a world whose calls to models are recorded. */
export async function openTappedWorld(
  models: readonly object[] = [],
  settings: Readonly<Record<string, string>> = {},
  open: typeof TestWorld.open = TestWorld.open,
): Promise<TappedWorld> {
  const tap = await Wiretap.open();
  const world = await open({ ...tap.settings, ...settings }, models);
  tap.target = world.sandbox;
  const close = async () => {
    await world.close();
    await tap.close();
  };
  return { tap, world, close };
}
