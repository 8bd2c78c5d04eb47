/** Signed URLs: which files they open, and which requests they do not allow. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { FileStore, LinkSigner, MediaLinks, toStatusPath } from '#application';
import { TestWorld } from '#testing';

const BYTES = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 11) % 253));
const HOUR = 3_600_000;
/** Headers that may differ between two responses to the same request. */
const OF_ITS_OWN = ['date', 'x-request-id', 'connection', 'keep-alive'];

let world: TestWorld;
let signed: string;
beforeAll(async () => {
  world = await TestWorld.open({ PUBLIC_BASE_URL: 'https://api.example.dev/' });
  signed = await world.storeFile(BYTES, 'video/mp4');
});
afterAll(() => world.close());

const ask = (address: string, init: RequestInit = {}) => fetch(`${world.api}${address}`, init);
const bytesOf = async (answer: Response) => Buffer.from(await answer.arrayBuffer());

describe('a signed URL', () => {
  test.each(['/v1', ''])('opens its file without a credential, with the path prefix "%s"', async (prefix) => {
    const answer = await ask(signed.replace('/v1', prefix));
    expect(answer.status).toBe(200);
    expect((await bytesOf(answer)).equals(BYTES)).toBe(true);
    const { headers } = answer;
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'video/mp4',
      'content-length': '300000',
      'content-disposition': expect.stringMatching(/^inline; filename="gen_\w+-0\.mp4"$/),
      'x-content-type-options': 'nosniff',
      'accept-ranges': 'bytes',
      'access-control-allow-origin': '*',
      'cross-origin-resource-policy': 'cross-origin',
      'content-security-policy': expect.stringContaining('sandbox'),
    });
    const [, seconds] = /^private, max-age=(\d+)$/.exec(headers.get('cache-control') ?? '') ?? [];
    expect(Number(seconds)).toBeGreaterThan(24 * 3_600 - 60);
    expect(Number(seconds)).toBeLessThanOrEqual(24 * 3_600);
  });

  test('returns the same headers for HEAD as for GET', async () => {
    const goOn = world.stopClock(); // max-age depends on the current time
    for (const range of ['', 'bytes=0-9', 'bytes=-0']) {
      const init = { headers: range ? { range } : {} };
      const [got, head] = await Promise.all([ask(signed, init), ask(signed, { ...init, method: 'HEAD' })]);
      await got.arrayBuffer();
      expect(await bytesOf(head)).toHaveLength(0);
      expect(head.status).toBe(got.status);
      const said = ({ headers }: Response) => [...headers].filter(([name]) => !OF_ITS_OWN.includes(name));
      expect(said(head)).toEqual(said(got));
    }
    goOn();
  });

  test.each([
    ['bytes=0-0', 0, 0],
    ['bytes=1000-2000', 1_000, 2_000],
    ['bytes=299990-', 299_990, 299_999],
    ['bytes=-10', 299_990, 299_999],
  ])('serves the range %s', async (range, start, end) => {
    const answer = await ask(signed, { headers: { range } });
    expect([answer.status, answer.headers.get('content-range')]).toEqual([206, `bytes ${start}-${end}/300000`]);
    expect((await bytesOf(answer)).equals(BYTES.subarray(start, end + 1))).toBe(true);
  });

  test('returns 416 for an unsatisfiable range, 200 for several or a stale If-Range, 304 for its ETag', async () => {
    const none = await ask(signed, { headers: { range: 'bytes=300000-' } });
    expect([none.status, none.headers.get('content-range')]).toEqual([416, 'bytes */300000']);
    expect(await none.json()).toMatchObject({ status: 'error', statusCode: 416 });
    const several = await ask(signed, { headers: { range: 'bytes=0-1,5-6' } });
    expect([several.status, (await bytesOf(several)).length]).toEqual([200, BYTES.length]);
    const etag = several.headers.get('etag') ?? '';
    for (const [ifRange, status] of [
      [etag, 206],
      ['"x"', 200],
    ] as const) {
      const answer = await ask(signed, { headers: { range: 'bytes=0-1', 'if-range': ifRange } });
      await answer.arrayBuffer();
      expect(answer.status).toBe(status);
    }
    const known = await ask(signed, { headers: { 'if-none-match': etag } });
    expect([known.status, (await bytesOf(known)).length]).toEqual([304, 0]);
  });

  test('continues to serve files after a client has read only a part and disconnected', async () => {
    const large = await world.storeFile(Buffer.alloc(20_000_000), 'video/mp4');
    const answer = await ask(large);
    const reader = answer.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    expect((await ask(signed)).status).toBe(200);
  });
});

describe('the protection by signed URLs', () => {
  const expectForbidden = async (answer: Response, message = 'The signed URL is invalid') => {
    const body = (await answer.json()) as { message: string };
    expect([answer.status, body.message]).toEqual([403, message]);
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
  };

  test('rejects a URL with one changed character in the id, the index or the query', async () => {
    const [address = '', query = ''] = signed.split('?');
    const changed = (text: string, at: number) => {
      const other = text[at] === 'a' ? 'b' : 'a';
      return text.slice(0, at) + other + text.slice(at + 1);
    };
    const places = (text: string, from: number) => Array.from({ length: text.length - from }, (_, i) => i + from);
    const addresses = [
      ...places(address, '/v1/media/'.length)
        .filter((at) => address[at] !== '/')
        .map((at) => `${changed(address, at)}?${query}`),
      ...places(query, 0).map((at) => `${address}?${changed(query, at)}`),
    ];
    expect(addresses.length).toBeGreaterThan(100);
    for (const each of addresses) expect([each, (await ask(each)).status]).toEqual([each, 403]);
  });

  test.each<[string, (address: string) => string]>([
    ['a later expiry', (address) => address.replace(/exp=(\d+)/, (_, exp) => `exp=${Number(exp) + 1}`)],
    ['an expiry in another notation', (address) => address.replace('exp=', 'exp=0')],
    ['no expiry', (address) => address.replace(/exp=\d+&/, '')],
    ['two expiries', (address) => `${address}&exp=99999999999`],
    ['no signature', (address) => address.replace(/&sig=.*/, '')],
    ['an empty signature', (address) => address.replace(/sig=.*/, 'sig=')],
    ['two signatures', (address) => `${address}&sig=x`],
    ['a signature with an extra character', (address) => `${address}A`],
    ['a padded signature', (address) => `${address}=`],
    ['no query', (address) => address.replace(/\?.*/, '')],
    ['another index', (address) => address.replace('/0?', '/1?')],
    ['another notation of its index', (address) => address.replace('/0?', '/00?')],
    ['another id', (address) => address.replace('gen_', 'req_')],
    ['the parent of an id', (address) => address.replace(/gen_\w+/, '%2e%2e%2fsecret')],
  ])('rejects a URL with %s', async (_, change) => {
    await expectForbidden(await ask(change(signed)));
  });

  test('rejects the signature of another file or of a status', async () => {
    const other = await world.storeFile(Buffer.from('other'), 'image/png');
    await expectForbidden(await ask(`${signed.split('?')[0]}?${other.split('?')[1]}`));
    const signer = world.getService(LinkSigner);
    const [address = ''] = signed.split('?');
    await expectForbidden(await ask(`${address}?${signer.createQuery('status', address, Date.now() + HOUR)}`));
    const forFile = new URLSearchParams(signer.createQuery('file', toStatusPath('gen_x'), Date.now() + HOUR));
    expect(signer.check('status', toStatusPath('gen_x'), Object.fromEntries(forFile)).ok).toBe(false);
  });

  test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('rejects the method %s', async (method) => {
    const status = `${toStatusPath('gen_x')}?${world.getService(LinkSigner).createQuery('status', toStatusPath('gen_x'), Date.now() + HOUR)}`;
    for (const address of [signed, status])
      await expectForbidden(await ask(address, { method }), 'A signed URL supports GET and HEAD only');
  });

  test('rejects an expired URL', async () => {
    const [address = ''] = signed.split('?');
    const query = world.getService(LinkSigner).createQuery('file', address, Date.now() - 1);
    await expectForbidden(await ask(`${address}?${query}`), 'The signed URL has expired');
  });

  test('limits the lifetime of a URL to 24 hours', async () => {
    const query = new URLSearchParams(
      world.getService(LinkSigner).createQuery('file', '/x', Date.now() + 1_000 * HOUR),
    );
    expect(Number(query.get('exp')) * 1000).toBeLessThanOrEqual(Date.now() + 24 * HOUR);
  });

  test('returns 404 for a deleted file only if the URL is valid', async () => {
    const gone = await world.storeFile(Buffer.from('gone'), 'image/png');
    await world.getService(FileStore).remove(/gen_\w+/.exec(gone)?.[0] ?? '');
    const answer = await ask(gone);
    expect(answer.status).toBe(404);
    await expectForbidden(await ask(gone.replace('sig=', 'sig=x')));
  });
});

test('signs URLs below the public base URL', async () => {
  const links = world.getService(MediaLinks);
  expect(links.createFileUrl('gen_a', 1, Date.now() + HOUR)).toMatch(
    /^https:\/\/api\.example\.dev\/v1\/media\/gen_a\/1\?exp=\d+&sig=[\w-]{43}$/,
  );
  expect(links.createStatusUrl('gen_a', Date.now() + HOUR)).toMatch(
    /^https:\/\/api\.example\.dev\/v1\/videos\/gen_a\?exp=/,
  );
});
