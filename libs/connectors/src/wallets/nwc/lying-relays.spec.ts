/** Relays and wallets of strangers, which say whatever they like. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { v2 as nip44 } from 'nostr-tools/nip44';
import { type EventTemplate, finalizeEvent, getPublicKey, type NostrEvent } from 'nostr-tools/pure';
import { type WebSocket, WebSocketServer } from 'ws';
import { type WalletConnection, type WalletResponse, WalletUnreachableError } from '#application';
import { NwcWallets } from '#connectors';

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

/** What a relay does with a message of ours, beside `welcome` when it is connected to. */
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
  ...{ pubkey: getPublicKey(WALLET), relays: [url], secret: CLIENT.toString('hex') },
  encryption: 'nip44_v2',
});

/** What is heard until the wallet, which the relay lets speak at the end, has told the truth. */
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
  while (server.clients.size > 0) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe('a relay that asks who we are', () => {
  test('and ends the connection, or does not believe it, ends nothing of ours', async () => {
    lies.welcome = (client) => client.send(JSON.stringify(['AUTH', 'challenge']));
    lies.authenticated = ({ client }) => client.terminate();
    lies.info = () => {};
    await expect(wallets.connect(nameOf())).rejects.toMatchObject({ status: 400 });
    delete lies.info;
    lies.authenticated = (send, { id }) => send('OK', id, false, 'restricted: no');
    await expect(wallets.connect(nameOf())).resolves.toMatchObject({ encryption: 'nip44_v2' });
  });

  test('and says nothing before it knows is told, and asked again', async () => {
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
  ])('by %s is not told', async (_, what) => {
    lies.welcome = (client) => client.send(JSON.stringify(['AUTH', what]));
    let told = 0;
    lies.authenticated = () => void told++;
    await wallets.connect(nameOf());
    expect(told).toBe(0);
  });
});

describe('believed is only what the wallet has signed:', () => {
  const PAID = { code: 'PAID' };

  test('not what bears the id and the signature of something that it has signed', async () => {
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
    await expect(wallets.connect(nameOf())).rejects.toThrow('know nothing');
    const { id, sig } = known;
    const forged = (request: string) => ({ ...response(request, sealed(QUOTA)), id, sig });
    expect(await heardFrom((send, name, event) => send('EVENT', name, forged(event.id)))).toEqual(PAID);
  });

  test('also where another relay has shown the same id with a wrong signature', async () => {
    const real = info();
    lies.info = (send, name) => {
      send('EVENT', name, { ...real, sig: '00'.repeat(64) });
      send('EOSE', name);
    };
    await expect(wallets.connect(nameOf())).rejects.toThrow('know nothing');
    lies.info = (send, name) => {
      send('EVENT', name, real);
      send('EOSE', name);
    };
    await expect(wallets.connect(nameOf())).resolves.toMatchObject({ encryption: 'nip44_v2' });
  });

  test.each<[string, (request: NostrEvent, name: string) => unknown]>([
    ['of somebody else', ({ id }) => response(id, sealed(QUOTA), STRANGER)],
    ['for another request', () => response('ab'.repeat(32), sealed(QUOTA))],
    ['for somebody else', ({ id }) => response(id, sealed(QUOTA, WALLET, STRANGER))],
    ['without encryption', ({ id }) => response(id, JSON.stringify(QUOTA))],
    ['of another kind', ({ id }) => signed({ kind: 1, tags: [['e', id]], content: sealed(QUOTA) })],
    ['with a changed tag', ({ id }) => ({ ...response('ab'.repeat(32), sealed(QUOTA)), tags: [['e', id]] })],
    ['that is nested deeply', ({ id }) => response(id, sealed('x').replace(/^/, '['.repeat(30_000)))],
    ['that is no answer', ({ id }) => response(id, sealed('paid'))],
    ['with tags that are none', ({ id }) => ({ ...response(id, sealed(QUOTA)), tags: [['e', id], null, 7] })],
    ['without a signature', ({ id }) => ({ ...response(id, sealed(QUOTA)), sig: undefined })],
    ['that is no event', () => null],
    ['that is a list', () => [[[]]]],
  ])('not an answer %s', async (_, lie) => {
    expect(await heardFrom((send, name, event) => send('EVENT', name, lie(event, name)))).toEqual(PAID);
  });

  test('not what is said in another form', async () => {
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

describe('a relay that says too much', () => {
  test.each<[string, (client: WebSocket) => void]>([
    ['in many messages', (client) => many(1_000, () => client.send('["NOTICE","x"]'))],
    ['in long messages', (client) => many(40, () => client.send(JSON.stringify(['NOTICE', 'x'.repeat(60_000)])))],
    ['in one message', (client) => client.send(Buffer.alloc(20_000_000))],
    ['in pieces of a message', (client) => many(200, () => client.send('', { fin: false }))],
    ['in pings', (client) => many(1_000, () => client.ping())],
  ])('%s is left', async (_, talk) => {
    lies.welcome = talk;
    lies.info = () => {};
    await expect(wallets.connect(nameOf())).rejects.toMatchObject({ status: 400 });
    await gone();
    expect(dialled).toBe(1);
  });

  test('that the wallet has signed is heard in part: each signature takes a millisecond to check', async () => {
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

describe('a relay that ends the connection', () => {
  test('at once is dialled once, and nothing was asked', async () => {
    lies.welcome = (client) => client.close();
    await expect(wallets.pay(connection(), 'lnbc1', () => {})).rejects.toThrow(WalletUnreachableError);
    expect(dialled).toBe(1);
  });

  test('after it has taken the request is not dialled again', async () => {
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

test('a relay that does not take the request may have passed it on', async () => {
  lies.request = (send, _, { id }) => send('OK', id, false, 'blocked: no');
  await expect(wallets.pay(connection(), 'lnbc1', () => {})).rejects.toThrow('no relay has said');
});

test('a relay that does not let go is let go', async () => {
  const { promise: closed, resolve } = Promise.withResolvers<number>();
  lies.info = (send, name) => {
    send('EVENT', name, info());
    send('EOSE', name);
    send.client.once('close', resolve);
    send.client.pause(); // it reads nothing any more, so it answers no closing either
    setTimeout(() => send.client.resume(), 100);
  };
  await wallets.connect(nameOf());
  expect(await closed).toBe(1006); // not agreed
});

test.each([
  ['nip44_v3', 'takes neither of the encryptions'],
  ['', 'takes neither of the encryptions'],
])('a wallet whose only encryption is "%s" is refused', async (scheme, why) => {
  lies.info = (send, name) => {
    send('EVENT', name, info({ tags: [['encryption', scheme]] }));
    send('EOSE', name);
  };
  await expect(wallets.connect(nameOf())).rejects.toMatchObject({ status: 400, message: expect.stringContaining(why) });
});

function many(times: number, act: () => void): void {
  for (let i = 0; i < times; i++) act();
}
