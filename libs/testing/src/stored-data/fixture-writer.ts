/** Sends requests of many kinds to a test world, and saves its stored data and the data of its clients. */
import { cp, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type pg from 'pg';
import { Clock, Secrets } from '#application';
import { type AccountEvent, accountCodec, accountDecider } from '#domain';
import { PostgresSnapshots } from '#eventstore';
import { fold } from '#kernel';
import { closeJobCost } from '../../../../apps/ledger/src/jobs.ts';
import { createBackup } from '../../../../apps/maintenance/src/create.ts';
import { listDatabases } from '../../../../apps/maintenance/src/databases.ts';
import type { CapturedRequest, Wiretap } from '../world/wiretap.ts';
import type { TestAccount, TestWorld } from '../world/world.ts';
import {
  type ClientData,
  type Continuation,
  type Exchange,
  isFirstSubmission,
  resendRequest,
  STORED_DATA_DIR,
} from './fixture.ts';
import * as requests from './requests.ts';
import { writeTables } from './tables.ts';

export const MASTER_KEY = '8d1f3b0c5e7a92644f6e2d1c0b9a887766554433221100ffeeddccbbaa998877';

export class FixtureWriter {
  private account: TestAccount = { creditId: '', apiKey: '' };

  constructor(
    private readonly world: TestWorld,
    private readonly pool: pg.Pool,
    private readonly tap: Wiretap,
    private readonly directory: string,
  ) {}

  async write(publicBaseUrl: string): Promise<void> {
    const { world } = this;
    this.account = await world.createAccount(42);
    const { creditId, apiKey } = this.account;
    await (await world.startGateway()).close(); // records which event store the database belongs to
    await world.sendChat(await world.createAccount()); // is rejected for lack of money
    await this.changeKeys();
    const wallet = await world.createNwcWallet();
    assertEqual((await world.connectWallet(this.account, wallet)).status, 200, 'wallet');
    const rateLimitedExchanges = await this.sendAll(requests.createRateLimitedRequests(apiKey, creditId));
    await this.requestFailingMedia();
    const replays: Exchange[] = [];
    for (const request of [
      ...requests.createKeyedRequests(apiKey, creditId),
      ...(await this.preparePaidRequests('A coin')),
    ])
      replays.push(await this.replay(request));
    const continuationRequests = await this.prepareContinuations();
    const proofs = (await this.preparePaidRequests('A leaf')).map(toUnsentExchange);
    const { abandon, openHold } = await this.startOpenChat();
    await this.requestPendingVideos();
    await this.saveSnapshot();
    await this.send(
      requests.createPostRequest('chat', '/v1/chat/completions', requests.createAuthHeaders(apiKey), CHAT),
    );
    const time = await this.saveFixture();
    const reads = await this.sendAll(await this.createReadRequests(replays));
    const continuations: Continuation[] = [];
    for (const request of continuationRequests) continuations.push(await this.sendContinuation(request));
    this.tap.takeReceived();
    await this.releaseVideos();
    const submitted: CapturedRequest[] = [];
    await world.waitUntil(async () => {
      submitted.push(...this.tap.takeReceived().filter(isFirstSubmission));
      return submitted.length >= requests.PENDING_VIDEOS.length;
    });
    const keyList = await world.send('GET', '/keys?show_key=true', { headers: { 'x-credit-id': creditId } });
    const clients: ClientData = {
      time,
      masterKey: MASTER_KEY,
      publicBaseUrl,
      account: { creditId, apiKey, stream: this.stream },
      apiKeys: keyList.body.data.map(({ api_key }: { api_key: string }) => api_key),
      walletUrl: wallet.nwc_url,
      replays,
      reads,
      counted: rateLimitedExchanges,
      proofs,
      continuations,
      openHold,
      pendingVideos: submitted.sort(compareByPath),
    };
    await writeFile(path.join(STORED_DATA_DIR, 'clients.json'), `${JSON.stringify(clients, null, 2)}\n`);
    abandon();
  }

  private get stream(): string {
    return `account-${this.world.getAccountId(this.account)}`;
  }

  private send(request: requests.RequestSpec): Promise<Exchange> {
    return resendRequest(toUnsentExchange(request), this.world.api);
  }

  private async sendAll(requestSpecs: readonly requests.RequestSpec[]): Promise<readonly Exchange[]> {
    const exchanges: Exchange[] = [];
    for (const request of requestSpecs) exchanges.push(await this.send(request));
    return exchanges;
  }

  /**
   * Sends a request three times. Returns the second response, with the headers that are equal in the third.
   */
  private async replay(request: requests.RequestSpec): Promise<Exchange> {
    const first = await this.send(request);
    const [second, third] = [await this.send(request), await this.send(request)];
    if (first.status >= 300 || second.responseHeaders['idempotent-replayed'] !== 'true')
      throw new Error(`${request.name}: ${first.status} ${second.status} ${first.responseBody}`);
    const same = Object.entries(second.responseHeaders).filter(
      ([name, value]) => third.responseHeaders[name] === value,
    );
    return { ...second, responseHeaders: Object.fromEntries(same) };
  }

  private async changeKeys(): Promise<void> {
    const headers = { 'x-credit-id': this.account.creditId };
    const create = async (body: object) => (await this.world.send('POST', '/keys', { headers, body })).body.data._id;
    const limited = await create({
      name: 'limited',
      usage_limit_usd: 5,
      reset_period: 'monthly',
      expire_at: '2999-01-01',
    });
    const revoked = await create({ name: 'revoked' });
    await this.world.send('PATCH', `/keys/${limited}`, { headers, body: { reset_period: 'weekly' } });
    await this.world.send('DELETE', `/keys/${revoked}`, { headers });
  }

  /**
   * Requests a video that fails and whose cost is recorded, a video whose submission is only known from a webhook, and
   * an image that its provider invoices but does not deliver.
   */
  private async requestFailingMedia(): Promise<void> {
    const { world, account } = this;
    const ids: string[] = [];
    for (const fault of ['policy', 'lost latency=20']) {
      const body = { ...JSON.parse(requests.VIDEO_BODY), prompt: `[[sandbox fault=${fault}]]` };
      ids.push((await world.post('/v1/videos', body, account)).body.id);
    }
    for (const id of ids)
      await world.waitUntil(async () => (await world.get(`/v1/videos/${id}`, account)).status === 200);
    const image = { model: 'google/nano-banana-2', prompt: '[[sandbox fault=policy_billed]]' };
    assertEqual(
      (await world.post('/v1/images/generations', { ...image, provider: { only: ['google'] } }, account)).status,
      400,
      'image',
    );
    await closeJobCost(world.foundation, String(ids[0]), '0.2', () => {});
  }

  /** Pays two challenges. @returns the requests that they pay for, one for each scheme */
  private async preparePaidRequests(prompt: string): Promise<readonly requests.RequestSpec[]> {
    const body = requests.formatImageBody(prompt);
    const pay = async () => {
      const response = await this.send(requests.createPostRequest('challenge', '/v1/images/generations', {}, body));
      const { invoice } = JSON.parse(response.responseBody);
      const { preimage } = (await this.world.payInvoice(invoice)).body;
      return { header: response.responseHeaders['www-authenticate'] ?? '', preimage };
    };
    const [l402, payment] = [await pay(), await pay()];
    const token = /\btoken="([^"]+)"/.exec(l402.header)?.[1];
    const paymentHeader = payment.header.slice(payment.header.indexOf('Payment '), payment.header.indexOf(', L402 '));
    const { invoice: _, ...challenge } = Object.fromEntries(
      [...paymentHeader.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
    );
    const credential = JSON.stringify({ challenge, payload: { preimage: payment.preimage } });
    const createPaidRequest = (name: string, authorization: string) =>
      requests.createPostRequest(`${name} for ${prompt}`, '/v1/images/generations', { authorization }, body);
    return [
      createPaidRequest('L402', `L402 ${token}:${l402.preimage}`),
      createPaidRequest('Payment', `Payment ${Buffer.from(credential).toString('base64url')}`),
    ];
  }

  /**
   * Prepares requests that continue a conversation: by the id of a response, an item, encrypted reasoning, stored
   * reasoning and a compaction.
   */
  private async prepareContinuations(): Promise<readonly requests.RequestSpec[]> {
    const headers = requests.createAuthHeaders(this.account.apiKey);
    const createResponsesRequest = (name: string, body: object) =>
      requests.createPostRequest(name, '/v1/responses', headers, JSON.stringify(body));
    const sendJson = async (body: object, route = '/v1/responses') => {
      const exchange = await this.send(requests.createPostRequest('ask', route, headers, JSON.stringify(body)));
      assertEqual(exchange.status, 200, exchange.responseBody);
      return JSON.parse(exchange.responseBody);
    };
    const model = 'openai/gpt-5-mini';
    const first = await sendJson({ model, input: 'My name is Ada', store: true });
    const second = await sendJson({ model, input: 'I live in Paris', previous_response_id: first.id, store: true });
    const claude = { model: requests.CLAUDE, ...requests.REASONING_PARAMS };
    const toolRequest = { ...claude, input: [requests.TOOL_CALL_PROMPT] };
    const encryptedResponse = await sendJson({
      ...toolRequest,
      include: ['reasoning.encrypted_content'],
      store: false,
    });
    const storedResponse = await sendJson({ ...toolRequest, store: true });
    const compacted = await sendJson(
      { model: requests.CLAUDE, input: [requests.TOOL_CALL_PROMPT] },
      '/v1/responses/compact',
    );
    const createToolOutput = (call_id: string) => ({ type: 'function_call_output', call_id, output: 'Sun' });
    this.responseIds = [first.id, second.id, storedResponse.id];
    return [
      createResponsesRequest('chain of responses', { model, input: 'Who am I?', previous_response_id: second.id }),
      createResponsesRequest('stored item', { model, input: [{ type: 'item_reference', id: first.output.at(-1).id }] }),
      createResponsesRequest('encrypted reasoning', {
        ...claude,
        input: [
          requests.TOOL_CALL_PROMPT,
          ...encryptedResponse.output,
          createToolOutput(encryptedResponse.output.at(-1).call_id),
        ],
      }),
      createResponsesRequest('stored reasoning', {
        ...claude,
        input: [createToolOutput(storedResponse.output.at(-1).call_id)],
        previous_response_id: storedResponse.id,
      }),
      createResponsesRequest('compaction', {
        model: requests.CLAUDE,
        input: [...compacted.output, { role: 'user', content: 'Go on' }],
      }),
    ];
  }

  private responseIds: readonly string[] = [];

  private async createReadRequests(replays: readonly Exchange[]): Promise<readonly requests.RequestSpec[]> {
    const { creditId, apiKey } = this.account;
    const [byKey, byId] = [requests.createAuthHeaders(apiKey), { 'x-credit-id': creditId }];
    const parseReplayBody = (name: string) =>
      JSON.parse(replays.find((exchange) => exchange.name === name)?.responseBody ?? '{}');
    const getRoute = (url: string) => url.slice(new URL(url).origin.length);
    const video = parseReplayBody('video');
    const { data } = (await this.world.get(`/v1/videos/${video.id}`, this.account)).body;
    return [
      ...this.responseIds.flatMap((id) => [
        requests.createGetRequest('response', `/v1/responses/${id}`, byKey),
        requests.createGetRequest('items', `/v1/responses/${id}/input_items`, byKey),
      ]),
      requests.createGetRequest('status link', getRoute(video.status_url), {}),
      requests.createGetRequest('video', `/v1/videos/${video.id}`, byKey),
      requests.createGetRequest('video file', getRoute(data.url), {}),
      requests.createGetRequest('image file', getRoute(parseReplayBody('image').data[0].url), {}),
      requests.createGetRequest('keys', '/keys?show_key=true&include_disabled=true', byId),
      requests.createPostRequest('balance', '/credits/balance', byKey),
      requests.createGetRequest('history', '/queries/history?page_count=100', byKey),
      requests.createGetRequest('invoice', `/topup/status/${parseReplayBody('invoice').invoice_id}`, {}),
      requests.createGetRequest('wallet', '/nwc-auto-topup', byId),
    ];
  }

  /** Starts a chat whose provider does not respond, so that its hold stays open. */
  private async startOpenChat(): Promise<{ abandon(): void; openHold: string }> {
    const listHeldEvents = async () =>
      (await this.world.listEvents(this.account)).filter(({ type }) => type === 'FundsHeld');
    const before = (await listHeldEvents()).length;
    const end = new AbortController();
    const body = CHAT.replace('Hello', '[[sandbox latency=600000]]');
    const headers = { ...requests.createAuthHeaders(this.account.apiKey), 'content-type': 'application/json' };
    // The request is interrupted below.
    fetch(`${this.world.api}/v1/chat/completions`, { method: 'POST', headers, body, signal: end.signal }).catch(
      () => {},
    );
    await this.world.waitUntil(async () => (await listHeldEvents()).length > before);
    const { data } = (await listHeldEvents()).at(-1) as unknown as { data: { holdId: string } };
    return { abandon: () => end.abort(), openHold: data.holdId };
  }

  /** Takes the lease of the video workflow, so that no process submits videos, and then requests some. */
  private async requestPendingVideos(): Promise<void> {
    const { rows } = await this.pool.query(TAKE_LEASE);
    if (rows.length === 0) throw new Error('the lease of the video workflow does not exist');
    await new Promise((resolve) => setTimeout(resolve, 3_000)); // until the previous holder of the lease has noticed
    for (const body of requests.PENDING_VIDEOS)
      assertEqual((await this.world.post('/v1/videos', body, this.account)).status, 202, body.model);
  }

  private async releaseVideos(): Promise<void> {
    await this.pool.query("update public.leases set ends_at = now() where name = 'videos'");
  }

  /** Saves a snapshot, as the command runner does after a thousand events. */
  private async saveSnapshot(): Promise<void> {
    const events = await this.world.listEvents(this.account);
    const last = events.at(-1);
    if (!last) throw new Error('the account has no events');
    const secrets = this.world.getService(Secrets);
    const snapshots = new PostgresSnapshots(this.pool, secrets.derivePurposeKeys('countinghouse snapshots'));
    const state = accountCodec.encode(
      fold(accountDecider, accountDecider.getInitialState(), events as readonly AccountEvent[]),
    );
    const { revision, position, id } = last;
    await snapshots.save(this.stream, accountCodec.version, { state, revision, position, lastEventId: id });
  }

  /**
   * Saves the tables and a backup with the same events, and the files.
   * @returns the time before the tables were written, in milliseconds since 1970
   */
  private async saveFixture(): Promise<number> {
    const { databaseUrl: url } = this.world;
    for (;;) {
      await this.world.waitUntil(() => this.areReadModelsCurrent());
      const before = await this.readLastPosition();
      const time = this.world.getService(Clock).nowMs();
      await writeTables(url);
      const backup = path.join(STORED_DATA_DIR, 'backup');
      await rm(backup, { recursive: true, force: true });
      await createBackup(listDatabases(url, undefined), backup, 'PostgreSQL');
      await cp(path.join(this.directory, 'files'), path.join(STORED_DATA_DIR, 'files'), { recursive: true });
      if ((await this.readLastPosition()) === before) return time;
    }
  }

  /** Whether the read models include every event. */
  private async areReadModelsCurrent(): Promise<boolean> {
    const sql = `select min(position) >= (select max(position) from es.events) as read from books.checkpoints`;
    return (await this.pool.query(sql)).rows[0].read;
  }

  private async readLastPosition(): Promise<string> {
    return (await this.pool.query('select max(position) as last from es.events')).rows[0].last;
  }

  private async sendContinuation(request: requests.RequestSpec): Promise<Continuation> {
    this.tap.takeReceived();
    const exchange = await this.send(request);
    return { exchange, upstream: this.tap.takeReceived() };
  }
}

const TAKE_LEASE = `update public.leases set ends_at = 'infinity', held = drawn + 1, drawn = drawn + 1
                     where name = 'videos' returning name`;
const CHAT = '{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"Hello"}]}';

function toUnsentExchange(request: requests.RequestSpec): Exchange {
  return { ...request, status: 0, responseHeaders: {}, responseBody: '' };
}

function compareByPath(one: CapturedRequest, other: CapturedRequest): number {
  return one.path < other.path ? -1 : 1;
}

function assertEqual(actual: number, expected: number, context: string): void {
  if (actual !== expected) throw new Error(`${actual} instead of ${expected}: ${context}`);
}
