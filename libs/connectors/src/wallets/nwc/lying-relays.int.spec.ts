/** Relays and wallets of third parties that send arbitrary messages. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { v2 as nip44 } from 'nostr-tools/nip44';
import { type EventTemplate, finalizeEvent, getPublicKey, type NostrEvent } from 'nostr-tools/pure';
import { type WebSocket, WebSocketServer } from 'ws';
import { type WalletConnection, type WalletResponse, WalletUnreachableError } from '#application';
import { NwcWallets } from '#connectors';
import { waitUntil } from '#testing';

const [INFO, RESPONSE] = [13_194, 23_195];
const [WALLET, CLIENT, STRANGER] = ['11', '22', '33'].map((each) => Buffer.from(each.repeat(32), 'hex')) as [
  Key,
  Key,
  Key,
];
type Key = Buffer<ArrayBuffer>;

const signed = (template: Partial<EventTemplate> & { kind: number }, key: Key = WALLET): NostrEvent => {
  const created_at = Math.floor(Date.now() / 1_000);
  return JSON.parse(JSON.stringify(finalizeEvent({ created_at, tags: [], content: '', ...template }, key)));
};
const info = (more: Partial<EventTemplate> = {}) =>
  signed({ kind: INFO, tags: [['encryption', 'nip44_v2']], content: 'pay_invoice', ...more });
const sealed = (answer: unknown, from: Key = WALLET, to: Key = CLIENT) =>
  nip44.encrypt(JSON.stringify(answer), nip44.utils.getConversationKey(from, getPublicKey(to)));
const response = (request: string, content: string, key?: Key) =>
  signed({ kind: RESPONSE, tags: [['e', request]], content }, key);
const QUOTA = { error: { code: 'QUOTA_EXCEEDED', message: 'forged' } };

/** What a relay does for each kind of message from the client; `welcome` is called for each connection. */
interface Lies {
  welcome?(client: WebSocket): void;
  info?(send: Send, subscription: string): void;
  request?(send: Send, subscription: string, event: NostrEvent): void;
  authenticated?(send: Send, event: NostrEvent): void;
}
type Send = ((...message: readonly unknown[]) => void) & { readonly client: WebSocket };

let server: WebSocketServer;
let url: string;
let wallets: NwcWallets;
let lies: Lies;
let dialled = 0;
const unhandled: unknown[] = [];
const onUnhandled = (error: unknown) => void unhandled.push(error);

beforeAll(async () => {
  server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  server.on('connection', serve);
  process.on('unhandledRejection', onUnhandled);
  url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});
afterAll(() => {
  process.off('unhandledRejection', onUnhandled);
  for (const client of server.clients) client.terminate();
  server.close();
});
beforeEach(() => {
  wallets = new NwcWallets({ allowedRelays: [url] });
  lies = {};
  dialled = 0;
});
afterEach(async () => {
  await wallets.close();
  expect(unhandled).toEqual([]);
});

function serve(client: WebSocket): void {
  dialled++;
  const send = Object.assign((...message: readonly unknown[]) => client.send(JSON.stringify(message), () => {}), {
    client,
  });
  client.on('error', () => {});
  client.on('message', (data) => heard(send, JSON.parse(String(data))));
  lies.welcome?.(client);
}

function honest(send: Send, name: string): void {
  send('EVENT', name, info());
  send('EOSE', name);
}

let subscription = '';
function heard(send: Send, [kind, first, filter]: readonly [string, unknown, unknown]): void {
  const event = first as NostrEvent;
  const name = first as string;
  if (kind === 'AUTH') lies.authenticated?.(send, event);
  if (kind === 'REQ' && (filter as { readonly kinds: readonly number[] }).kinds.includes(INFO)) {
    (lies.info ?? honest)(send, name);
  } else if (kind === 'REQ') {
    subscription = name;
    send('EOSE', name);
  }
  if (kind === 'EVENT' && lies.request) lies.request(send, subscription, event);
  else if (kind === 'EVENT') send('OK', event.id, true, '');
}

const nameOf = () =>
  `nostr+walletconnect://${getPublicKey(WALLET)}?relay=${encodeURIComponent(url)}&secret=${CLIENT.toString('hex')}`;
const connection = (): WalletConnection => ({
  pubkey: getPublicKey(WALLET),
  relays: [url],
  secret: CLIENT.toString('hex'),
  encryption: 'nip44_v2',
});

/** Returns the first response that is accepted: the relay sends the lie first, then the wallet's real response. */
async function heardFrom(lie: NonNullable<Lies['request']>): Promise<WalletResponse> {
  lies.request = (send, name, event) => {
    lie(send, name, event);
    send('EVENT', name, response(event.id, sealed({ result: {} })));
    send('OK', event.id, true, '');
  };
  return new Promise((resolve, reject) => {
    wallets.pay(connection(), 'lnbc1', resolve).catch(reject);
  });
}

async function gone(): Promise<void> {
  await waitUntil(() => server.clients.size === 0);
}

describe('a relay that requires authentication', () => {
  test('does not crash the process if it disconnects during authentication or rejects it', async () => {
    lies.welcome = (client) => client.send(JSON.stringify(['AUTH', 'challenge']));
    lies.authenticated = ({ client }) => client.terminate();
    lies.info = () => {};
    await expect(wallets.connect(nameOf())).rejects.toMatchObject({ status: 400 });
    delete lies.info;
    lies.authenticated = (send, { id }) => send('OK', id, false, 'restricted: no');
    await expect(wallets.connect(nameOf())).resolves.toMatchObject({ encryption: 'nip44_v2' });
  });

  test('gets the authentication and then the subscription again', async () => {
    let known = false;
    lies.info = (send, name) => {
      if (known) {
        send('EVENT', name, info());
        return send('EOSE', name);
      }
      send('CLOSED', name, 'auth-required: who are you?');
      send('AUTH', 'challenge');
    };
    lies.authenticated = (send, { id, pubkey, tags }) => {
      known = pubkey === getPublicKey(CLIENT) && tags.some(([, value]) => value === 'challenge');
      send('OK', id, known, '');
    };
    await expect(wallets.connect(nameOf())).resolves.toMatchObject({ encryption: 'nip44_v2' });
  });

  test.each<[string, unknown]>([
    ['nothing', null],
    ['a number', 7],
    ['an object', {}],
    ['a list', [[]]],
    ['60,000 characters', 'x'.repeat(60_000)],
  ])('with %s as the challenge gets no authentication', async (_, what) => {
    lies.welcome = (client) => client.send(JSON.stringify(['AUTH', what]));
    let told = 0;
    lies.authenticated = () => void told++;
    await wallets.connect(nameOf());
    expect(told).toBe(0);
  });
});

describe('only events signed by the wallet are accepted:', () => {
  const PAID = { code: 'PAID' };

  test('an event with the id and signature of another event is ignored', async () => {
    const known = info();
    const shown = (...events: readonly NostrEvent[]) => {
      lies.info = (send, name) => {
        for (const event of events) send('EVENT', name, event);
        send('EOSE', name);
      };
    };
    shown(known);
    await wallets.connect(nameOf());
    shown({ ...known, tags: [], content: 'pay_invoice, of an older wallet' });
    await expect(wallets.connect(nameOf())).rejects.toThrow('have no information');
    const { id, sig } = known;
    const forged = (request: string) => ({ ...response(request, sealed(QUOTA)), id, sig });
    expect(await heardFrom((send, name, event) => send('EVENT', name, forged(event.id)))).toEqual(PAID);
  });

  test('a valid event is accepted after an event with the same id and an invalid signature', async () => {
    const real = info();
    lies.info = (send, name) => {
      send('EVENT', name, { ...real, sig: '00'.repeat(64) });
      send('EOSE', name);
    };
    await expect(wallets.connect(nameOf())).rejects.toThrow('have no information');
    lies.info = (send, name) => {
      send('EVENT', name, real);
      send('EOSE', name);
    };
    await expect(wallets.connect(nameOf())).resolves.toMatchObject({ encryption: 'nip44_v2' });
  });

  test.each<[string, (request: NostrEvent, name: string) => unknown]>([
    ['signed by another key', ({ id }) => response(id, sealed(QUOTA), STRANGER)],
    ['for another request', () => response('ab'.repeat(32), sealed(QUOTA))],
    ['encrypted for another key', ({ id }) => response(id, sealed(QUOTA, WALLET, STRANGER))],
    ['without encryption', ({ id }) => response(id, JSON.stringify(QUOTA))],
    ['of another kind', ({ id }) => signed({ kind: 1, tags: [['e', id]], content: sealed(QUOTA) })],
    ['with a changed tag', ({ id }) => ({ ...response('ab'.repeat(32), sealed(QUOTA)), tags: [['e', id]] })],
    ['with deeply nested content', ({ id }) => response(id, sealed('x').replace(/^/, '['.repeat(30_000)))],
    ['that is not an object', ({ id }) => response(id, sealed('paid'))],
    ['with invalid tags', ({ id }) => ({ ...response(id, sealed(QUOTA)), tags: [['e', id], null, 7] })],
    ['without a signature', ({ id }) => ({ ...response(id, sealed(QUOTA)), sig: undefined })],
    ['that is null', () => null],
    ['that is a list', () => [[[]]]],
  ])('a response %s is ignored', async (_, lie) => {
    expect(await heardFrom((send, name, event) => send('EVENT', name, lie(event, name)))).toEqual(PAID);
  });

  test('messages in another format are ignored', async () => {
    const answer = await heardFrom((send, name) => {
      for (const text of ['', 'x', 'null', '7', '{}', '[]', '[[]]', '["EVENT"]', `["EVENT","${name}"]`, '["OK"]'])
        send.client.send(text);
      for (const kind of ['OK', 'CLOSED', 'NOTICE', 'EOSE', 'COUNT', 'constructor'])
        send(kind, { toString: 1 }, [null]);
      send('['.repeat(30_000));
      send.client.send(Buffer.from('["NOTICE"]'), { binary: true });
    });
    expect(answer).toEqual(PAID);
  });
});

describe('a relay that sends too much', () => {
  test.each<[string, (client: WebSocket) => void]>([
    ['in many messages', (client) => many(1_000, () => client.send('["NOTICE","x"]'))],
    ['in long messages', (client) => many(40, () => client.send(JSON.stringify(['NOTICE', 'x'.repeat(60_000)])))],
    ['in one message', (client) => client.send(Buffer.alloc(20_000_000))],
    ['in message fragments', (client) => many(200, () => client.send('', { fin: false }))],
    ['in pings', (client) => many(1_000, () => client.ping())],
  ])('%s is disconnected', async (_, talk) => {
    lies.welcome = talk;
    lies.info = () => {};
    await expect(wallets.connect(nameOf())).rejects.toMatchObject({ status: 400 });
    await gone();
    expect(dialled).toBe(1);
  });

  test('has only the signatures of the first events checked', async () => {
    const at = Math.floor(Date.now() / 1_000);
    const more = Array.from({ length: 20 }, (_, i) => info({ content: 'get_info', created_at: at + i }));
    lies.info = (send, name) => {
      for (const event of [...Array.from({ length: 5 }, () => info({ created_at: at })), ...more])
        send('EVENT', name, event);
      send('EOSE', name);
    };
    await expect(wallets.connect(nameOf())).resolves.toMatchObject({ encryption: 'nip44_v2' });
  });
});

describe('a relay that closes the connection', () => {
  test('is not connected to again if it closes at once; the request then counts as not sent', async () => {
    lies.welcome = (client) => client.close();
    await expect(wallets.pay(connection(), 'lnbc1', () => {})).rejects.toThrow(WalletUnreachableError);
    expect(dialled).toBe(1);
  });

  test('is not connected to again if it closes after it has accepted the request', async () => {
    lies.request = (send, _, { id }) => {
      send('OK', id, true, '');
      send.client.close();
    };
    await wallets.pay(connection(), 'lnbc1', () => {});
    await gone();
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(dialled).toBe(1);
  });
});

test('a request that a relay rejects counts as not confirmed, because it may have been forwarded', async () => {
  lies.request = (send, _, { id }) => send('OK', id, false, 'blocked: no');
  await expect(wallets.pay(connection(), 'lnbc1', () => {})).rejects.toThrow('no relay has confirmed');
});

test('a connection is closed even if the relay does not take part in the closing handshake', async () => {
  const { promise: closed, resolve } = Promise.withResolvers<number>();
  lies.info = (send, name) => {
    send('EVENT', name, info());
    send('EOSE', name);
    send.client.once('close', resolve);
    send.client.pause(); // it stops reading, so it does not take part in the closing handshake
    setTimeout(() => send.client.resume(), 100);
  };
  await wallets.connect(nameOf());
  expect(await closed).toBe(1006); // abnormal closure
});

test.each([
  ['nip44_v3', 'supports neither nip44_v2 nor nip04'],
  ['', 'supports neither nip44_v2 nor nip04'],
])('a wallet whose only encryption is "%s" is rejected', async (scheme, why) => {
  lies.info = (send, name) => {
    send('EVENT', name, info({ tags: [['encryption', scheme]] }));
    send('EOSE', name);
  };
  await expect(wallets.connect(nameOf())).rejects.toMatchObject({ status: 400, message: expect.stringContaining(why) });
});

function many(times: number, act: () => void): void {
  for (let i = 0; i < times; i++) act();
}
