/** Which hosts the URLs of third parties can lead to, and how downloads fail. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Agent, type buildConnector } from 'undici';
import { type Download, DownloadError } from '#application';
import { type DownloadOptions, HttpDownloads } from './downloads.ts';
import type { createPinnedAgent } from './pinned-agent.ts';

const PUBLIC = ['93.184.215.14', '2606:2800:21f::1'];
const limits = (more: object = {}) => ({
  maxBytes: 100_000,
  timeoutMs: 60_000,
  signal: new AbortController().signal,
  ...more,
});

type Answering = (request: IncomingMessage, response: ServerResponse) => void;

/** Simulates the internet: all connections lead to this server. */
let server: Server;
let port: number;
let answer: Answering;
let asked: { readonly url: string; readonly headers: IncomingMessage['headers'] }[];
let dialled: (readonly string[])[];
let resolved: string[];

beforeAll(async () => {
  server = createServer((request, response) => {
    asked.push({ url: `http://${request.headers.host}${request.url}`, headers: request.headers });
    answer(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  [asked, dialled, resolved] = [[], [], []];
  answer = (_, response) => response.end('a file');
});

const dial: typeof createPinnedAgent = (addresses) => {
  dialled.push(addresses);
  const toUs: buildConnector.connector = (_, done) => {
    const socket = connect(port, '127.0.0.1', () => done(null, socket)).once('error', (error) => done(error, null));
  };
  return new Agent({ connect: toUs });
};

function downloads(more: Partial<DownloadOptions> = {}): HttpDownloads {
  return new HttpDownloads({
    providers: new Map([['fal', { baseUrl: `http://127.0.0.1:${port}/fal` }]]),
    connectTimeoutMs: 60_000,
    idleTimeoutMs: 60_000,
    allowedOrigins: [],
    resolve: async (name) => {
      resolved.push(name);
      return PUBLIC;
    },
    createAgent: dial,
    failureStepMs: 5,
    ...more,
  });
}

async function read({ bytes }: Download): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of bytes) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

const MESSAGE =
  'The file cannot be downloaded: it must have a public http or https URL, have at most 100000 bytes and arrive within 60 seconds';

/** Reads a download completely and returns the error with which it fails. */
async function refusalOf(download: Promise<Download>): Promise<DownloadError> {
  const failure = await download.then(read).catch((error) => error);
  expect(failure).toBeInstanceOf(DownloadError);
  return failure;
}

const expectRefused = async (url: string, more: Partial<DownloadOptions> = {}) =>
  expect(await refusalOf(downloads(more).fetchCustomerUrl(url, limits()))).toMatchObject({
    message: MESSAGE,
    reason: 'rejected',
  });

/** Hosts that are not on the public internet, in various notations. */
const OURS = [
  '10.0.0.1',
  '10.255.255.255',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.0.1',
  '127.0.0.1',
  '127.8.8.8',
  '169.254.169.254',
  '169.254.0.1',
  '100.100.100.200',
  '100.64.0.1',
  '0.0.0.0',
  '255.255.255.255',
  '224.0.0.1',
  '192.0.0.192',
  '198.18.0.1',
  '192.0.2.1',
  '203.0.113.1',
  '240.0.0.1',
  '2130706433',
  '0x7f000001',
  '0x7f.0.0.1',
  '017700000001',
  '0177.0.0.1',
  '127.1',
  '127.0.1',
  '0',
  '0x0',
  '2852039166',
  '0xa9.0xfe.0xa9.0xfe',
  '10.1',
  '012.0.0.1',
  '127.0.0.1.',
  '１２７.０.０.１',
  '①②⑦.0.0.1',
  '[::1]',
  '[::]',
  '[0:0:0:0:0:0:0:1]',
  '[::ffff:10.0.0.1]',
  '[::ffff:7f00:1]',
  '[::127.0.0.1]',
  '[fd00::1]',
  '[fc00::1]',
  '[fe80::1]',
  '[fd00:ec2::254]',
  '[64:ff9b::a9fe:a9fe]',
  '[64:ff9b:1::a00:1]',
  '[2002:7f00:1::]',
  '[2001::1]',
  '[ff02::1]',
  '[100::1]',
  '[2001:db8::1]',
  '[fe80::1%25eth0]',
  '[::ffff:0:127.0.0.1]',
  '[5f00::1]',
  'localhost',
  'LOCALHOST',
  'localhost.',
  'x.localhost',
  'ⓛⓞⓒⓐⓛⓗⓞⓢⓣ',
  'metadata',
  'metadata.google.internal',
  'kubernetes.default.svc.cluster.local',
  'router.lan',
  'printer.local',
  'nas.home.arpa',
  'a.test',
  'vault.',
];

describe('a URL of a customer', () => {
  test('is fetched from the addresses of its hostname, with that hostname in the request', async () => {
    answer = (_, response) => response.setHeader('content-type', 'image/png').end('a file');
    const plain = await downloads().fetchCustomerUrl('http://pictures.example.com/a.png?x=1#y', limits());
    expect(plain).toMatchObject({ declaredType: 'image/png', declaredSize: 6 });
    expect(await read(plain)).toBe('a file');
    expect(asked.map(({ url }) => url)).toEqual(['http://pictures.example.com/a.png?x=1']);
    expect(asked[0]?.headers).toMatchObject({ 'accept-encoding': 'identity' });
    expect([resolved, dialled]).toEqual([['pictures.example.com'], [PUBLIC]]);
  });

  test.each(OURS)('is rejected for the host %s, without any connection', async (host) => {
    await expectRefused(`http://${host}/latest/meta-data`);
    await expectRefused(`https://${host}/`);
    expect(dialled).toEqual([]);
  });

  test.each(OURS)('is rejected when it redirects to %s', async (host) => {
    const ascii = host.replaceAll(/\P{ASCII}/gu, encodeURIComponent);
    answer = (_, response) => response.writeHead(302, { location: `http://${ascii}/latest` }).end();
    await expectRefused('http://pictures.example.com/a.png');
    expect(asked).toHaveLength(1);
  });

  test.each([
    'ftp://example.com/a',
    'file:///etc/passwd',
    'gopher://example.com/',
    'data:image/png;base64,AA==',
    'javascript:1',
    'http://user:secret@example.com/',
    'http://user@example.com/',
    'http://:x@example.com/',
    'x',
    '',
    'http://',
    'http://example.com:8080/',
    'http://example.com:22/',
    'http://example.com:443/',
    'https://example.com:80/',
    '//example.com/',
    'http://exa mple.com/',
    `http://example.com/${'a'.repeat(9_000)}`,
    'unix:/run/x.sock',
  ])('is rejected if it is %s, also as the target of a redirect unless it is relative', async (url) => {
    await expectRefused(url);
    expect(asked).toEqual([]);
    if (url === '' || url === 'x' || url.startsWith('//')) return; // relative, so it leads to a public host
    answer = (_, response) => response.writeHead(307, { location: encodeURI(url) }).end();
    await expectRefused('http://pictures.example.com/');
    expect(asked).toHaveLength(1);
  });

  test.each([
    ['include a private one', ['93.184.215.14', '10.0.0.1']],
    ['include a private IPv6 address', ['93.184.215.14', 'fd00::1']],
    ['include the metadata service', ['169.254.169.254', '93.184.215.14']],
    ['include an IPv4-mapped IPv6 address', ['93.184.215.14', '::ffff:127.0.0.1']],
    ['are empty', []],
    ['include an invalid one', ['93.184.215.14', 'x']],
  ])('is rejected if the addresses of its hostname %s', async (_, addresses) => {
    await expectRefused('http://pictures.example.com/', { resolve: async () => addresses });
    expect(dialled).toEqual([]);
  });

  test('is fetched from the checked address, and rejected once its hostname resolves to a private one', async () => {
    const answers = [['93.184.215.14'], ['127.0.0.1']];
    const resolve = async () => answers.shift() ?? ['127.0.0.1'];
    expect(await read(await downloads({ resolve }).fetchCustomerUrl('http://rebound.example.com/', limits()))).toBe(
      'a file',
    );
    expect(dialled).toEqual([['93.184.215.14']]);
    await expectRefused('http://rebound.example.com/', { resolve });
    expect(dialled).toHaveLength(1);
  });

  test('is followed through at most five redirects, and the hostname of each is resolved', async () => {
    answer = ({ url = '' }, response) => {
      const left = Number(url.slice(1));
      if (left > 0)
        response.writeHead([301, 302, 303, 307, 308][left % 5] ?? 302, {
          location: `//host${left}.example.com/${left - 1}`,
        });
      response.end(left > 0 ? 'x'.repeat(200_000) : 'a file');
    };
    expect(await read(await downloads().fetchCustomerUrl('http://pictures.example.com/5', limits()))).toBe('a file');
    expect(resolved).toHaveLength(6);
    await expectRefused('http://pictures.example.com/6');
  });

  test.each<[string, Answering, object?]>([
    ['has status 404', (_, response) => response.writeHead(404).end()],
    ['has status 403', (_, response) => response.writeHead(403).end()],
    ['is partial content', (_, response) => response.writeHead(206).end('a')],
    ['has status 500', (_, response) => response.writeHead(500).end()],
    ['is a redirect without a location', (_, response) => response.writeHead(302).end()],
    ['is not HTTP', ({ socket }) => void socket.end('220 mail.example.com ESMTP\r\n')],
    ['is missing because the connection closes', ({ socket }) => void socket.destroy()],
    ['is declared as too large', (_, response) => response.writeHead(200, { 'content-length': '100001' }).write('a')],
    ['is too large and has no length', (_, response) => response.end('x'.repeat(100_001))],
    [
      'never ends',
      (_, response) => {
        const write = () => {
          while (!response.destroyed && response.write('x'.repeat(9_000)));
        };
        response.on('drain', write);
        write();
      },
    ],
    [
      'is compressed',
      (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(9_999_999))),
    ],
    [
      'ends early',
      ({ socket }, response) => {
        response.writeHead(200, { 'content-length': '50' }).write('a', () => socket.destroy());
      },
    ],
    ['never starts', () => {}, { idleTimeoutMs: 30 }],
    ['has endless headers', ({ socket }) => void socket.write(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}`)],
  ])('fails with an error that does not reveal that the response %s', async (_, answering, ...[more]) => {
    answer = answering;
    await expectRefused('http://pictures.example.com/a.png', more);
  });

  test('is aborted at its timeout if its file arrives too slowly', async () => {
    answer = (_, response) => {
      const drip = setInterval(() => response.write('x'), 5);
      response.once('close', () => clearInterval(drip));
    };
    const failure = await refusalOf(
      downloads().fetchCustomerUrl('http://pictures.example.com/', limits({ timeoutMs: 60 })),
    );
    expect(failure.reason).toBe('rejected');
  });

  test('is aborted at its timeout if its hostname is not resolved in time', async () => {
    const never = downloads({ resolve: () => new Promise(() => {}) });
    const failure = await refusalOf(never.fetchCustomerUrl('http://slow.example.com/', limits({ timeoutMs: 20 })));
    expect(failure.reason).toBe('rejected');
  });

  test('is aborted when the client disconnects, before or during the download', async () => {
    const gone = new AbortController();
    answer = (_, response) => response.write('a');
    const download = await downloads().fetchCustomerUrl(
      'http://pictures.example.com/',
      limits({ signal: gone.signal }),
    );
    setImmediate(() => gone.abort());
    await expect(read(download)).rejects.toThrow(DownloadError);
    await expect(
      downloads().fetchCustomerUrl('http://pictures.example.com/', limits({ signal: gone.signal })),
    ).rejects.toThrow(MESSAGE);
  });

  test('has its connection closed when the reader stops before the end of the file', async () => {
    const closed = Promise.withResolvers<void>();
    answer = (_, response) => {
      response.once('close', closed.resolve);
      response.write('x'.repeat(50_000));
    };
    const { bytes } = await downloads().fetchCustomerUrl('http://pictures.example.com/', limits());
    for await (const _ of bytes) break;
    await closed.promise;
  });

  test('fails only after `failureStepMs` if its host is private, its file is missing, or it is invalid', async () => {
    const step = 40;
    answer = (_, response) => response.writeHead(404).end();
    for (const url of ['http://10.0.0.1/', 'http://pictures.example.com/', 'x']) {
      const begun = performance.now();
      await expectRefused(url, { failureStepMs: step });
      expect(performance.now() - begun).toBeGreaterThanOrEqual(step - 2);
    }
  });

  test('may be private if exactly its origin is allowed', async () => {
    const admitted = [`http://127.0.0.1:${port}`];
    const own = downloads({ allowedOrigins: admitted });
    expect(await read(await own.fetchCustomerUrl(`http://127.0.0.1:${port}/a`, limits()))).toBe('a file');
    for (const url of [`http://127.0.0.1:${port + 1}/`, `https://127.0.0.1:${port}/`, `http://localhost:${port}/`])
      await expectRefused(url, { allowedOrigins: admitted });
    answer = (_, response) => response.writeHead(302, { location: 'http://10.0.0.1/' }).end();
    await expectRefused(`http://127.0.0.1:${port}/a`, { allowedOrigins: admitted });
  });
});

describe('a file of a provider', () => {
  const KEY = { authorization: 'Key secret' };
  const home = () => `http://127.0.0.1:${port}`;
  const fetched = (url: string, upstream = 'fal') =>
    downloads().fetchProviderFile(upstream, { url, headers: KEY }, limits());

  test('may be at the configured origin of the provider, and is requested with the credential', async () => {
    expect(await read(await fetched(`${home()}/files/a.png`))).toBe('a file');
    expect(asked[0]?.headers).toMatchObject(KEY);
    expect(dialled).toEqual([]);
  });

  test('may be at a public host, and is requested there without the credential', async () => {
    expect(await read(await fetched('http://files.example.com/a.png'))).toBe('a file');
    expect(asked[0]?.headers.authorization).toBeUndefined();
    expect(dialled).toEqual([PUBLIC]);
  });

  test('is requested without the credential after the first redirect to another host', async () => {
    answer = ({ url }, response) => {
      const to = { '/1': 'http://files.example.com/2', '/2': `${home()}/3` }[url ?? ''];
      if (to) response.writeHead(302, { location: to });
      response.end('a file');
    };
    expect(await read(await fetched(`${home()}/1`))).toBe('a file');
    expect(asked.map(({ headers }) => headers.authorization)).toEqual(['Key secret', undefined, undefined]);
  });

  test('is rejected at other private addresses, also after a redirect of the provider', async () => {
    await expect(fetched('http://10.0.0.1/')).rejects.toMatchObject({ reason: 'rejected' });
    await expect(fetched(`http://127.0.0.1:${port + 1}/`)).rejects.toMatchObject({ reason: 'rejected' });
    await expect(fetched(`${home()}/`, 'another')).rejects.toMatchObject({ reason: 'rejected' });
    answer = (_, response) => response.writeHead(302, { location: 'http://169.254.169.254/' }).end();
    await expect(fetched(`${home()}/`)).rejects.toMatchObject({ reason: 'rejected' });
  });

  test.each<[string, Answering]>([
    ['not_found', (_, response) => response.writeHead(404).end()],
    ['not_found', (_, response) => response.writeHead(410).end()],
    ['failed', (_, response) => response.writeHead(503).end()],
    ['failed', ({ socket }) => void socket.destroy()],
    ['too_large', (_, response) => response.end('x'.repeat(100_001))],
    ['too_large', (_, response) => response.writeHead(200, { 'content-length': '100001' }).write('a')],
  ])('fails with a reason that follows from the response: %s', async (why, answering) => {
    answer = answering;
    expect((await refusalOf(fetched(`${home()}/`))).reason).toBe(why);
  });
});
