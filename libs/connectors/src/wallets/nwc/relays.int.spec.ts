/** The party that names a relay must not be able to direct connections into the private network. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type NwcOptions, NwcWallets } from '#connectors';
import { parseConnectionString } from './connection-string.ts';
import { RelaySocket } from './relay-socket.ts';

const PUBKEY = '79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798';
const SECRET = 'a7'.repeat(32);
const urlOf = (...relays: readonly string[]) =>
  `nostr+walletconnect://${PUBKEY}?${relays.map((each) => `relay=${encodeURIComponent(each)}&`).join('')}secret=${SECRET}`;

describe('a connection string', () => {
  test.each([
    urlOf('wss://relay.example/v1?a=b'),
    urlOf('wss://relay.example/v1?a=b').replace('://', ':'),
    ` ${urlOf('wss://relay.example/v1?a=b').replace('nostr+wallet', 'nostrwallet')}&lud16=a@b.c `,
    urlOf('wss://relay.example/v1?a=b')
      .toUpperCase()
      .replace('NOSTR+WALLETCONNECT', 'nostr+walletconnect')
      .replace(/\?.*$/, '') + urlOf('wss://relay.example/v1?a=b').replace(/^[^?]*/, ''),
  ])('is parsed: %s', (text) => {
    expect(parseConnectionString(text, [])).toEqual({
      pubkey: PUBKEY,
      relays: ['wss://relay.example/v1?a=b'],
      secret: SECRET,
    });
  });

  test.each<[string, string]>([
    ['', 'connection string'],
    ['https://relay.example', 'connection string'],
    [urlOf(), 'from 1 to 4 relays'],
    [urlOf(...[1, 2, 3, 4, 5].map((n) => `wss://relay${n}.example`)), 'from 1 to 4 relays'],
    [urlOf('ws://relay.example'), 'wss://'],
    [urlOf('https://relay.example'), 'wss://'],
    [urlOf('file:///etc/passwd'), 'wss://'],
    [urlOf('wss://user:pass@relay.example'), 'plain addresses'],
    [urlOf('wss://relay.example:25'), 'port'],
    [urlOf(`wss://relay.example/${'x'.repeat(256)}`), 'addresses'],
    [urlOf('not an address'), 'addresses'],
    [urlOf('wss://relay.example').replace(PUBKEY, 'ff'.repeat(32)), 'public key'],
    [urlOf('wss://relay.example').replace(PUBKEY, PUBKEY.slice(1)), 'public key'],
    [urlOf('wss://relay.example').replace(SECRET, '00'.repeat(32)), 'secret'],
    [urlOf('wss://relay.example').replace(SECRET, 'secret'), 'secret'],
    [urlOf('wss://relay.example') + 'x'.repeat(2_048), 'at most'],
  ])('is rejected without its secret in the error: %s', (text, why) => {
    const read = () => parseConnectionString(text, ['ws://127.0.0.1:3100/relay']);
    expect(read).toThrow(expect.objectContaining({ status: 400, message: expect.stringContaining(why) }));
    expect(read).not.toThrow(SECRET);
  });

  test('can name an allowed relay by its exact address', () => {
    const read = (relay: string) => parseConnectionString(urlOf(relay), ['ws://127.0.0.1:3100/relay']).relays;
    expect(read('ws://127.0.0.1:3100/relay')).toHaveLength(1);
    expect(() => read('ws://127.0.0.1:3100/other')).toThrow('wss://');
    expect(() => read('ws://127.0.0.1:3101/relay')).toThrow('wss://');
  });
});

test('a relay that sends only informational responses is disconnected', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const relay = `ws://127.0.0.1:${(server.address() as { port: number }).port}/`;
  const end = await new Promise<Error | undefined>((onEnd) => {
    const resolve = async () => [];
    const ignore = () => {};
    new RelaySocket(relay, { resolve, allowedRelays: [relay] }, { onOpen: ignore, onMessage: ignore, onEnd });
  });
  expect(end?.message).toBe('too many informational responses');
  await expect(new NwcWallets({ allowedRelays: [relay] }).connect(urlOf(relay))).rejects.toMatchObject({ status: 400 });
  server.close();
});

describe('a relay', () => {
  let server: Server;
  let port: number;
  let dialled = 0;
  beforeAll(async () => {
    server = createServer((socket) => {
      dialled++;
      socket.destroy();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    port = (server.address() as { port: number }).port;
  });
  afterAll(() => void server.close());
  beforeEach(() => {
    dialled = 0;
  });

  const connect = (relay: string, resolve: NwcOptions['resolve']) =>
    new NwcWallets({ allowedRelays: [], ...(resolve ? { resolve } : {}) }).connect(urlOf(relay));

  test.each([
    '127.0.0.1',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '0x7f000001',
    '2130706433',
    '127.1',
    '10.1.2.3',
    '169.254.169.254',
  ])('at %s is not connected to', async (host) => {
    await expect(connect(`wss://${host}:${port}`, async () => ['127.0.0.1'])).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('is not public'),
    });
    expect(dialled).toBe(0);
  });

  test('whose hostname resolves to a private address is not connected to', async () => {
    await expect(connect(`wss://relay.wallet.dev:${port}`, async () => ['127.0.0.1'])).rejects.toThrow('is not public');
    await expect(connect(`wss://localhost:${port}`, async () => ['8.8.8.8', '::1'])).rejects.toThrow('is not public');
    expect(dialled).toBe(0);
  });

  test('is resolved only once for each connection, so a changed address is not connected to', async () => {
    let asked = 0;
    const changing = async () => {
      asked++;
      return asked === 1 ? ['192.0.0.8'] : ['127.0.0.1'];
    };
    await expect(connect(`wss://rebinding.wallet.dev:${port}`, changing)).rejects.toMatchObject({ status: 400 });
    expect([asked, dialled]).toEqual([1, 0]);
  });
});
