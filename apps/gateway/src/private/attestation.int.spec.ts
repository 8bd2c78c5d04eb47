import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { type CatalogueService, Clock, type ProviderRegistry, UpstreamError } from '#application';
import { isPrivate, readCatalogue } from '#catalogue';
import { TestWorld } from '#testing';
import { AttestationCache } from './attestation-cache.ts';

class StoppedClock extends Clock {
  stoppedAt = Date.parse('2026-11-22T12:00:00Z');

  nowMs(): number {
    return this.stoppedAt;
  }
}

const GPT = 'private/gpt-oss-120b';
const KIMI = 'private/kimi-k3';

describe('the attestation cache', () => {
  let time: StoppedClock;
  let attestations: AttestationCache;
  /** The requests to enclaves in order; `answer` settles a request. */
  let asked: { readonly enclave: string; readonly answer: PromiseWithResolvers<object> }[];
  const providers = {
    getAttestation: () => (enclave: string) => {
      const answer = Promise.withResolvers<object>();
      asked.push({ enclave, answer });
      return answer.promise;
    },
  } as unknown as ProviderRegistry;
  const servedBy = (current: object) => new AttestationCache({ current } as CatalogueService, providers, time);
  const later = (milliseconds: number) => {
    time.stoppedAt += milliseconds;
  };
  const answered = async (evidence: Promise<string>, key: string) => {
    asked.at(-1)?.answer.resolve({ key });
    expect(JSON.parse(await evidence)).toEqual({ key });
  };
  beforeEach(() => {
    time = new StoppedClock();
    asked = [];
    attestations = servedBy(readCatalogue());
  });

  test('requests evidence once for concurrent callers, and again after 30 seconds', async () => {
    const [first, second] = [attestations.loadEvidence(GPT), attestations.loadEvidence(GPT, 'fresh')];
    await answered(first, 'a');
    expect(await second).toBe(await first);
    later(29_999);
    expect(await attestations.loadEvidence(GPT)).toBe(await first);
    expect(asked.map(({ enclave }) => enclave)).toEqual(['/gpt-oss-120b']);
    later(1);
    await answered(attestations.loadEvidence(GPT), 'b');
    await answered(attestations.loadEvidence(KIMI), 'c');
    expect(asked.map(({ enclave }) => enclave)).toEqual(['/gpt-oss-120b', '/gpt-oss-120b', '/kimi-k3']);
  });

  test('requests evidence again for a caller that needs it fresh, at most once a second', async () => {
    await answered(attestations.loadEvidence(GPT), 'a');
    await attestations.loadEvidence(GPT, 'fresh');
    later(1_000);
    await answered(attestations.loadEvidence(GPT, 'fresh'), 'b');
    expect(asked).toHaveLength(2);
  });

  test('discards evicted evidence, also when its request is still in progress', async () => {
    await answered(attestations.loadEvidence(GPT), 'a');
    attestations.evict(GPT);
    const before = attestations.loadEvidence(GPT);
    attestations.evict(GPT);
    const after = attestations.loadEvidence(GPT);
    asked[1]?.answer.resolve({ key: 'b' });
    await before;
    await answered(after, 'c');
    expect(JSON.parse(await attestations.loadEvidence(GPT))).toEqual({ key: 'c' });
    attestations.evict('private/no-such');
  });

  test('does not request evidence again within one second of a failure', async () => {
    const refused = attestations.loadEvidence(GPT);
    asked[0]?.answer.reject(new UpstreamError('upstream_unavailable', 'away'));
    await expect(refused).rejects.toThrow('away');
    await expect(attestations.loadEvidence(GPT, 'fresh')).rejects.toThrow('away');
    later(1_000);
    await answered(attestations.loadEvidence(GPT), 'a');
    expect(asked).toHaveLength(2);
  });

  test('still returns cached evidence to other callers when a request for fresh evidence fails', async () => {
    await answered(attestations.loadEvidence(GPT), 'a');
    later(2_000);
    const fresh = attestations.loadEvidence(GPT, 'fresh');
    const any = attestations.loadEvidence(GPT);
    asked[1]?.answer.reject(new UpstreamError('rate_limited', 'too many'));
    await expect(fresh).rejects.toThrow('too many');
    expect([JSON.parse(await any), JSON.parse(await attestations.loadEvidence(GPT))]).toEqual([
      { key: 'a' },
      { key: 'a' },
    ]);
  });

  test('rejects with a timeout if the enclave does not respond, and aborts the request to the enclave', async () => {
    const silent = (_enclave: string, signal: AbortSignal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    const hasSilent = { getAttestation: () => silent } as unknown as ProviderRegistry;
    const impatient = new AttestationCache({ current: readCatalogue() } as CatalogueService, hasSilent, time, 5);
    await expect(impatient.loadEvidence(GPT)).rejects.toMatchObject({ code: 'timeout' });
  });

  test('returns the evidence of the only private model if no model is named', async () => {
    await expect(attestations.loadEvidence(undefined)).rejects.toMatchObject({ status: 400, param: 'model' });
    const all = readCatalogue();
    const models = all.models.filter((model) => !isPrivate(model) || model.id === KIMI);
    const { findModel, findRetirement, listMissingSettings } = all;
    attestations = servedBy({
      models,
      findModel: findModel.bind(all),
      findRetirement: findRetirement.bind(all),
      listMissingSettings: listMissingSettings.bind(all),
    });
    await answered(attestations.loadEvidence(undefined), 'only');
    expect(asked.map(({ enclave }) => enclave)).toEqual(['/kimi-k3']);
  });
});

describe('GET /private/attestation', () => {
  const received: IncomingMessage[] = [];
  let answer: (response: ServerResponse) => void;
  const enclave = createServer((request, response) => {
    received.push(request);
    answer(response);
  });
  let world: TestWorld;
  beforeAll(async () => {
    await new Promise<void>((listening) => enclave.listen(0, '127.0.0.1', listening));
    const { port } = enclave.address() as AddressInfo;
    world = await TestWorld.open({ TINFOIL_API_KEY: 'secret', TINFOIL_BASE_URL: `http://127.0.0.1:${port}/front` });
  });
  afterAll(async () => {
    await world.close();
    enclave.closeAllConnections();
    await new Promise((closed) => enclave.close(closed));
  });
  beforeEach(() => {
    received.length = 0;
    world.getService(AttestationCache).evict(GPT);
  });
  const get = (query: string) => world.get(`/private/attestation${query}`);

  test('returns the evidence without a credential, and forwards no header or query to the enclave', async () => {
    const bundle = { enclaveAttestationReport: { format: 'x', body: 'eA==' }, own: { of: ['it', null, 1.5] } };
    answer = (response) => response.end(JSON.stringify(bundle));
    const headers = { cookie: 'a=b', 'x-marked': 'marked', 'user-agent': 'marked', origin: 'https://page.example' };
    const {
      status,
      body,
      headers: got,
    } = await world.send('GET', `/private/attestation?model=${GPT}&marked=1`, { headers });
    expect([status, body, got.get('cache-control')]).toEqual([200, bundle, 'no-store']);
    expect([got.get('content-type'), got.get('access-control-allow-origin')]).toEqual([
      'application/json; charset=utf-8',
      '*',
    ]);
    expect(received.map(({ method, url }) => [method, url])).toEqual([['GET', '/front/gpt-oss-120b/attestation']]);
    expect(JSON.stringify(received[0]?.rawHeaders)).not.toMatch(/marked|cookie|page\.example/);
  });

  test.each<[string, (response: ServerResponse) => void, number]>([
    ['invalid JSON', (response) => response.end('<html>'), 502],
    ['a JSON array', (response) => response.end('["evidence"]'), 502],
    ['more than 1 MiB', (response) => response.end(JSON.stringify({ digest: 'x'.repeat(1024 * 1024) })), 502],
    [
      'an endless body of more than 1 MiB',
      (response) => void response.write('{"a":"'.padEnd(1024 * 1024 + 9, 'x')),
      502,
    ],
    [
      'JSON that is nested too deeply',
      (response) => response.end('{"a":'.repeat(99_999) + 1 + '}'.repeat(99_999)),
      502,
    ],
    ['a body that ends early', (response) => void response.write('{', () => response.destroy()), 502],
    ['a redirect', (response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(), 502],
    ['status 404 with a text of its own', (response) => response.writeHead(404).end('words'), 502],
    ['status 500', (response) => response.writeHead(500).end('words'), 502],
    ['no response and closes the connection', (response) => response.destroy(), 503],
  ])('returns a documented error if the enclave returns %s', async (_, given, expected) => {
    answer = given;
    const { status, body, text } = await get(`?model=${GPT}`);
    expect([status, body]).toEqual([expected, expect.objectContaining({ status: 'error', statusCode: expected })]);
    expect(text).not.toContain('words');
    await get(`?model=${GPT}`);
    expect(received).toHaveLength(1);
  });

  test.each([
    ['', 400],
    ['?model=', 400],
    [`?model=${GPT}&model=${KIMI}`, 400],
    ['?model=gpt-oss-120b', 404],
    ['?model=openai/gpt-oss-120b', 404],
    [`?model=${GPT}:nitro`, 404],
    ['?model=private/../kimi-k3', 404],
    ['?model=PRIVATE/GPT-OSS-120B', 404],
  ])('rejects the query "%s" without a request to an enclave', async (query, expected) => {
    const { status, body } = await get(query);
    expect([status, body.error.param, received.length]).toEqual([expected, 'model', 0]);
  });
});
