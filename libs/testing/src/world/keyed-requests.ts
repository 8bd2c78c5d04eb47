import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { TestResponse } from './test-response.ts';
import { type TestAccount, TestWorld } from './world.ts';

const CHAT = '/v1/chat/completions';

interface KeyedRequestOptions {
  readonly extra?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly route?: string;
  readonly body?: object;
  readonly api?: string;
}

/** Sends requests with one Idempotency-Key of one account through two gateways, and reads their effects. */
export class KeyedRequests {
  account: TestAccount = { creditId: '', apiKey: '' };
  key = '';

  private constructor(
    readonly world: TestWorld,
    readonly apis: readonly [string, string],
    readonly database: pg.Client,
  ) {}

  static async open(environment: Readonly<Record<string, string>> = {}): Promise<KeyedRequests> {
    const world = await TestWorld.open(environment);
    const database = new pg.Client({ connectionString: world.databaseUrl });
    await database.connect();
    return new KeyedRequests(world, [world.api, await world.addGateway()], database);
  }

  async close(): Promise<void> {
    await this.database.end();
    await this.world.close();
  }

  /** Starts with a new account, a new key and an empty provider bill. */
  async reset(): Promise<void> {
    this.account = await this.world.createAccount(1.05);
    this.key = `retry-${randomUUID()}`;
    await this.world.bill.clear();
  }

  /** Sends a chat with a directive for the sandbox, or another `body`. */
  send(
    directive = 'tokens=3',
    { extra, headers, route = CHAT, api = this.world.api, body }: KeyedRequestOptions = {},
  ): Promise<TestResponse> {
    const sent = { ...this.createHeaders(), ...headers };
    return this.world.send('POST', route, { body: body ?? createChat(directive, extra), headers: sent, api });
  }

  /** Requests a stream and disconnects when `marker` has been received; with an empty `marker`, when money is held. */
  async sendAndDisconnect(
    directive: string,
    marker: string,
    { api = this.world.api, route = CHAT, body }: KeyedRequestOptions = {},
  ): Promise<void> {
    const abortController = new AbortController();
    const response = fetch(`${api}${route}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...this.createHeaders() },
      body: JSON.stringify(body ?? createChat(directive, { stream: true })),
      signal: abortController.signal,
    });
    if (marker === '') await this.waitForHold();
    else await readUpTo(marker, await response);
    abortController.abort();
    await response.catch(() => {}); // aborted
  }

  /** Waits until money is held for a request. */
  waitForHold(): Promise<void> {
    return this.world.waitUntil(async () => (await this.getEventTypes()).at(-1) === 'FundsHeld');
  }

  /** Returns the types of the account's events after its funding. */
  async getEventTypes(): Promise<readonly string[]> {
    return (await this.world.listEvents(this.account)).slice(3).map(({ type }) => type);
  }

  /** Returns the number of calls that the provider bills. */
  async countBilledCalls(): Promise<number> {
    return (await this.world.bill.fetchTotal()).lines;
  }

  /** Returns the stored claims and responses of the account. */
  async listClaims() {
    return (
      await this.database.query('select * from gateway.answers where payer_id = $1', [
        this.world.getAccountId(this.account),
      ])
    ).rows;
  }

  updateClaims(set: string, values: readonly unknown[] = [], database: pg.Client | pg.Pool = this.database) {
    return database.query(
      `update gateway.answers set ${set} where payer_id = '${this.world.getAccountId(this.account)}'`,
      [...values],
    );
  }

  /** Rejects updates of `column` in gateway.answers while `work` runs. */
  async withFullDisk(column: 'answer' | 'held', work: () => Promise<void>): Promise<void> {
    await this.database.query(`create function gateway.full() returns trigger language plpgsql as $$ begin
        raise exception 'the disk is full'; end $$;
      create trigger full_disk before update of ${column} on gateway.answers
        for each row execute function gateway.full()`);
    try {
      await work();
    } finally {
      await this.database.query('drop function gateway.full cascade');
    }
  }

  private createHeaders() {
    return { authorization: `Bearer ${this.account.apiKey}`, 'idempotency-key': this.key };
  }
}

function createChat(directive: string, extra: object = {}): object {
  return { model: 'openai/gpt-5-mini', messages: [{ role: 'user', content: `[[sandbox ${directive}]]` }], ...extra };
}

async function readUpTo(marker: string, { body }: Response): Promise<void> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of body ?? []) {
    text += decoder.decode(chunk);
    if (text.includes(marker)) return;
  }
}
