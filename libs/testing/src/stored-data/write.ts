/**
 * Writes the fixture of stored data: runs the whole program with a database of its own, sends requests of every kind, and saves
 * the tables, the files, a backup, and what clients hold. See apps/gateway/src/stored-data.spec.ts for how to call it.
 */
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { Clock, Secrets } from '#application';
import { type AccountEvent, accountCodec, accountDecider } from '#domain';
import { PostgresSnapshots } from '#eventstore';
import { fold } from '#kernel';
import { closeJobCost } from '../../../../apps/ledger/src/jobs.ts';
import { createBackup } from '../../../../apps/maintenance/src/create.ts';
import { listDatabases } from '../../../../apps/maintenance/src/databases.ts';
import { createTestDatabase } from '../world/test-database.ts';
import { type CapturedRequest, Wiretap } from '../world/wiretap.ts';
import { type TestAccount, TestWorld } from '../world/world.ts';
import {
  type ClientData,
  type Continuation,
  type Exchange,
  isFirstSubmission,
  STORED_DATA,
  sendAgain,
} from './fixture.ts';
import * as requests from './requests.ts';
import { writeTables } from './tables.ts';

/** Links and challenges name this address. The program listens there while the fixture is written, and nowhere else. */
const PORT = 18_091;
const MASTER_KEY = '8d1f3b0c5e7a92644f6e2d1c0b9a887766554433221100ffeeddccbbaa998877';

export async function writeStoredData(): Promise<void> {
  for (const each of ['tables', 'files', 'backup'])
    await rm(path.join(STORED_DATA, each), { recursive: true, force: true });
  await mkdir(STORED_DATA, { recursive: true });
  const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-stored-data-'));
  const [database, tap] = await Promise.all([createTestDatabase(), Wiretap.open()]);
  const publicBaseUrl = `http://127.0.0.1:${PORT}`;
  const environment = {
    ...{
      DATABASE_URL: database.url,
      DATA_DIR: directory,
      MASTER_KEY,
      PORT: String(PORT),
      PUBLIC_BASE_URL: publicBaseUrl,
    },
    ...{ UNCLAIMED_AFTER_DAYS: '30', ...tap.settings },
  };
  const world = await TestWorld.open(environment, [requests.VIDEO_MODEL]);
  tap.target = world.sandbox;
  const pool = new pg.Pool({ connectionString: database.url, max: 2 });
  try {
    await new Writer(world, pool, tap, directory).write(publicBaseUrl);
  } finally {
    await pool.end();
    await world.close();
    await Promise.all([tap.close(), database.drop(), rm(directory, { recursive: true })]);
  }
}

class Writer {
  private account: TestAccount = { creditId: '', apiKey: '' };

  constructor(
    private readonly world: TestWorld,
    private readonly pool: pg.Pool,
    private readonly tap: Wiretap,
    private readonly directory: string,
  ) {}

  async write(publicBaseUrl: string): Promise<void> {
    const { world } = this;
    this.account = await world.account(42);
    const { creditId, apiKey } = this.account;
    await (await world.gateway()).close(); // notes which events the database belongs to
    await world.chat(await world.account()); // is rejected for lack of money
    await this.changeKeys();
    const wallet = await world.nwcWallet();
    assert((await world.connect(this.account, wallet)).status, 200, 'wallet');
    const counted = await this.sendAll(requests.countedRequests(apiKey, creditId));
    await this.makeVideos();
    const replays: Exchange[] = [];
    for (const each of [...requests.keyedRequests(apiKey, creditId), ...(await this.paidRequests('A coin'))])
      replays.push(await this.replay(each));
    const wanted = await this.wantedContinuations();
    const proofs = (await this.paidRequests('A leaf')).map(unsent);
    const { abandon, openHold } = await this.leaveChat();
    await this.requestPendingVideos();
    await this.saveSnapshot();
    await this.send(requests.post('chat', '/v1/chat/completions', requests.withKey(apiKey), CHAT));
    const time = await this.save();
    const reads = await this.sendAll(await this.readRequests(replays));
    const continuations: Continuation[] = [];
    for (const each of wanted) continuations.push(await this.continue(each));
    this.tap.since();
    await this.releaseVideos();
    const submitted: CapturedRequest[] = [];
    await world.until(async () => {
      submitted.push(...this.tap.since().filter(isFirstSubmission));
      return submitted.length >= requests.PENDING_VIDEOS.length;
    });
    const shown = await world.send('GET', '/keys?show_key=true', { headers: { 'x-credit-id': creditId } });
    const clients: ClientData = {
      ...{ time, masterKey: MASTER_KEY, publicBaseUrl },
      account: { creditId, apiKey, stream: this.stream },
      apiKeys: shown.body.data.map(({ api_key }: { api_key: string }) => api_key),
      walletUrl: wallet.nwc_url,
      ...{ replays, reads, counted, proofs, continuations, openHold },
      pendingVideos: submitted.sort(byPath),
    };
    await writeFile(path.join(STORED_DATA, 'clients.json'), `${JSON.stringify(clients, null, 2)}\n`);
    abandon();
  }

  private get stream(): string {
    return `account-${this.world.idOf(this.account)}`;
  }

  private send(request: requests.Request): Promise<Exchange> {
    return sendAgain(unsent(request), this.world.api);
  }

  private async sendAll(all: readonly requests.Request[]): Promise<readonly Exchange[]> {
    const exchanges: Exchange[] = [];
    for (const each of all) exchanges.push(await this.send(each));
    return exchanges;
  }

  /** Sends a request three times. Keeps the response to the repetition, and the headers that each repetition has. */
  private async replay(request: requests.Request): Promise<Exchange> {
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
      ...{ usage_limit_usd: 5, reset_period: 'monthly', expire_at: '2999-01-01' },
    });
    const revoked = await create({ name: 'revoked' });
    await this.world.send('PATCH', `/keys/${limited}`, { headers, body: { reset_period: 'weekly' } });
    await this.world.send('DELETE', `/keys/${revoked}`, { headers });
  }

  /**
   * A video that is not made and whose cost is noted, one of which a web hook says that its provider has it, and an image that
   * its provider invoices and does not deliver.
   */
  private async makeVideos(): Promise<void> {
    const { world, account } = this;
    const ids: string[] = [];
    for (const fault of ['policy', 'lost latency=20']) {
      const body = { ...JSON.parse(requests.VIDEO), prompt: `[[sandbox fault=${fault}]]` };
      ids.push((await world.post('/v1/videos', body, account)).body.id);
    }
    for (const id of ids) await world.until(async () => (await world.get(`/v1/videos/${id}`, account)).status === 200);
    const image = { model: 'google/nano-banana-2', prompt: '[[sandbox fault=policy_billed]]' };
    assert(
      (await world.post('/v1/images/generations', { ...image, provider: { only: ['google'] } }, account)).status,
      400,
      'image',
    );
    await closeJobCost(world.foundation, String(ids[0]), '0.2', () => {});
  }

  /** Pays two challenges. @returns the requests that they pay for, one for each scheme */
  private async paidRequests(prompt: string): Promise<readonly requests.Request[]> {
    const body = requests.imageBody(prompt);
    const pay = async () => {
      const response = await this.send(requests.post('challenge', '/v1/images/generations', {}, body));
      const { invoice } = JSON.parse(response.responseBody);
      const { preimage } = (await this.world.pay(invoice)).body;
      return { header: response.responseHeaders['www-authenticate'] ?? '', preimage };
    };
    const [l402, payment] = [await pay(), await pay()];
    const token = /\btoken="([^"]+)"/.exec(l402.header)?.[1];
    const own = payment.header.slice(payment.header.indexOf('Payment '), payment.header.indexOf(', L402 '));
    const { invoice: _, ...challenge } = Object.fromEntries(
      [...own.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
    );
    const shown = JSON.stringify({ challenge, payload: { preimage: payment.preimage } });
    const paid = (name: string, authorization: string) =>
      requests.post(`${name} for ${prompt}`, '/v1/images/generations', { authorization }, body);
    return [
      paid('L402', `L402 ${token}:${l402.preimage}`),
      paid('Payment', `Payment ${Buffer.from(shown).toString('base64url')}`),
    ];
  }

  /** Requests that continue what was said before: by the id of a response, an item, encrypted reasoning and a compaction. */
  private async wantedContinuations(): Promise<readonly requests.Request[]> {
    const headers = requests.withKey(this.account.apiKey);
    const post = (name: string, body: object) => requests.post(name, '/v1/responses', headers, JSON.stringify(body));
    const ask = async (body: object, route = '/v1/responses') => {
      const exchange = await this.send(requests.post('ask', route, headers, JSON.stringify(body)));
      assert(exchange.status, 200, exchange.responseBody);
      return JSON.parse(exchange.responseBody);
    };
    const model = 'openai/gpt-5-mini';
    const first = await ask({ model, input: 'My name is Ada', store: true });
    const second = await ask({ model, input: 'I live in Paris', previous_response_id: first.id, store: true });
    const claude = { model: requests.CLAUDE, ...requests.REASONING };
    const question = { ...claude, input: [requests.QUESTION] };
    const thought = await ask({ ...question, include: ['reasoning.encrypted_content'], store: false });
    const stored = await ask({ ...question, store: true });
    const compacted = await ask({ model: requests.CLAUDE, input: [requests.QUESTION] }, '/v1/responses/compact');
    const output = (call_id: string) => ({ type: 'function_call_output', call_id, output: 'Sun' });
    this.responseIds = [first.id, second.id, stored.id];
    return [
      post('chain of responses', { model, input: 'Who am I?', previous_response_id: second.id }),
      post('stored item', { model, input: [{ type: 'item_reference', id: first.output.at(-1).id }] }),
      post('encrypted reasoning', {
        ...claude,
        input: [requests.QUESTION, ...thought.output, output(thought.output.at(-1).call_id)],
      }),
      post('stored reasoning', {
        ...claude,
        input: [output(stored.output.at(-1).call_id)],
        previous_response_id: stored.id,
      }),
      post('compaction', { model: requests.CLAUDE, input: [...compacted.output, { role: 'user', content: 'Go on' }] }),
    ];
  }

  private responseIds: readonly string[] = [];

  private async readRequests(replays: readonly Exchange[]): Promise<readonly requests.Request[]> {
    const { creditId, apiKey } = this.account;
    const [byKey, byId] = [requests.withKey(apiKey), { 'x-credit-id': creditId }];
    const bodyOf = (name: string) => JSON.parse(replays.find((each) => each.name === name)?.responseBody ?? '{}');
    const pathIn = (url: string) => url.slice(new URL(url).origin.length);
    const video = bodyOf('video');
    const { data } = (await this.world.get(`/v1/videos/${video.id}`, this.account)).body;
    return [
      ...this.responseIds.flatMap((id) => [
        requests.get('response', `/v1/responses/${id}`, byKey),
        requests.get('items', `/v1/responses/${id}/input_items`, byKey),
      ]),
      requests.get('status link', pathIn(video.status_url), {}),
      requests.get('video', `/v1/videos/${video.id}`, byKey),
      requests.get('video file', pathIn(data.url), {}),
      requests.get('image file', pathIn(bodyOf('image').data[0].url), {}),
      requests.get('keys', '/keys?show_key=true&include_disabled=true', byId),
      requests.post('balance', '/credits/balance', byKey),
      requests.get('history', '/queries/history?page_count=100', byKey),
      requests.get('invoice', `/topup/status/${bodyOf('invoice').invoice_id}`, {}),
      requests.get('wallet', '/nwc-auto-topup', byId),
    ];
  }

  /** A chat whose provider is silent: its hold stays open. */
  private async leaveChat(): Promise<{ abandon(): void; openHold: string }> {
    const held = async () => (await this.world.facts(this.account)).filter(({ type }) => type === 'FundsHeld');
    const before = (await held()).length;
    const end = new AbortController();
    const body = CHAT.replace('Hello', '[[sandbox latency=600000]]');
    const headers = { ...requests.withKey(this.account.apiKey), 'content-type': 'application/json' };
    fetch(`${this.world.api}/v1/chat/completions`, { method: 'POST', headers, body, signal: end.signal }).catch(
      () => {},
    );
    await this.world.until(async () => (await held()).length > before);
    const { data } = (await held()).at(-1) as unknown as { data: { holdId: string } };
    return { abandon: () => end.abort(), openHold: data.holdId };
  }

  /** Takes the lease of the workflow of videos, so that nobody submits them, and requests some. */
  private async requestPendingVideos(): Promise<void> {
    const { rows } = await this.pool.query(TAKE_LEASE);
    if (rows.length === 0) throw new Error('there is no lease of videos');
    await new Promise((resolve) => setTimeout(resolve, 3_000)); // until its holder notices
    for (const body of requests.PENDING_VIDEOS)
      assert((await this.world.post('/v1/videos', body, this.account)).status, 202, body.model);
  }

  private async releaseVideos(): Promise<void> {
    await this.pool.query("update public.leases set ends_at = now() where name = 'videos'");
  }

  /** The program does this after a thousand events. */
  private async saveSnapshot(): Promise<void> {
    const events = await this.world.facts(this.account);
    const last = events.at(-1);
    if (!last) throw new Error('the account has no events');
    const secrets = this.world.part(Secrets);
    const snapshots = new PostgresSnapshots(this.pool, secrets.derivePurposeKeys('countinghouse snapshots'));
    const state = accountCodec.encode(
      fold(accountDecider, accountDecider.getInitialState(), events as readonly AccountEvent[]),
    );
    const { revision, position, id } = last;
    await snapshots.save(this.stream, accountCodec.version, { state, revision, position, lastEventId: id });
  }

  /** Saves the tables and a backup of one moment, and the files. @returns the time */
  private async save(): Promise<number> {
    const { databaseUrl: url } = this.world;
    for (;;) {
      await this.world.until(() => this.isRead());
      const before = await this.lastPosition();
      const time = this.world.part(Clock).nowMs();
      await writeTables(url);
      const backup = path.join(STORED_DATA, 'backup');
      await rm(backup, { recursive: true, force: true });
      await createBackup(listDatabases(url, undefined), backup, 'PostgreSQL');
      await cp(path.join(this.directory, 'files'), path.join(STORED_DATA, 'files'), { recursive: true });
      if ((await this.lastPosition()) === before) return time;
    }
  }

  /** Whether the read models have every event. */
  private async isRead(): Promise<boolean> {
    const sql = `select min(position) >= (select max(position) from es.events) as read from books.checkpoints`;
    return (await this.pool.query(sql)).rows[0].read;
  }

  private async lastPosition(): Promise<string> {
    return (await this.pool.query('select max(position) as last from es.events')).rows[0].last;
  }

  private async continue(request: requests.Request): Promise<Continuation> {
    this.tap.since();
    const exchange = await this.send(request);
    return { exchange, upstream: this.tap.since() };
  }
}

const TAKE_LEASE = `update public.leases set ends_at = 'infinity', held = drawn + 1, drawn = drawn + 1
                     where name = 'videos' returning name`;
const CHAT = '{"model":"openai/gpt-5-mini","messages":[{"role":"user","content":"Hello"}]}';

function unsent(request: requests.Request): Exchange {
  return { ...request, status: 0, responseHeaders: {}, responseBody: '' };
}

function byPath(one: CapturedRequest, other: CapturedRequest): number {
  return one.path < other.path ? -1 : 1;
}

function assert(actual: number, expected: number, what: string): void {
  if (actual !== expected) throw new Error(`${actual} instead of ${expected}: ${what}`);
}
