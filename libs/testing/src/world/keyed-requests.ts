import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { type TestAccount, type TestResponse, TestWorld } from './world.ts';

const CHAT = '/v1/chat/completions';

interface Ask {
  readonly extra?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly route?: string;
  readonly body?: object;
  readonly api?: string;
}

/** Requests under one Idempotency-Key of one account, over two gateways, and what became of them. */
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
    return new KeyedRequests(world, [world.api, await world.anotherGateway()], database);
  }

  async close(): Promise<void> {
    await this.database.end();
    await this.world.close();
  }

  /** Another account, another key, and a provider's bill without lines. */
  async begin(): Promise<void> {
    this.account = await this.world.account(1.05);
    this.key = `retry-${randomUUID()}`;
    await this.world.bill.clear();
  }

  /** A chat for which the sandbox follows a directive, unless there is another `body`. */
  ask(
    directive = 'tokens=3',
    { extra: more, headers, route = CHAT, api = this.world.api, body }: Ask = {},
  ): Promise<TestResponse> {
    const sent = { ...this.headers(), ...headers };
    return this.world.send('POST', route, { body: body ?? chatOf(directive, more), headers: sent, api });
  }

  /** Asks for a stream, and hangs up once `enough` of it has come; at once, when that is empty. */
  async leave(
    directive: string,
    enough: string,
    { api = this.world.api, route = CHAT, body }: Ask = {},
  ): Promise<void> {
    const hangUp = new AbortController();
    const response = fetch(`${api}${route}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...this.headers() },
      body: JSON.stringify(body ?? chatOf(directive, { stream: true })),
      signal: hangUp.signal,
    });
    if (enough === '') await this.held();
    else await readUpTo(enough, await response);
    hangUp.abort();
    await response.catch(() => {});
  }

  /** Until money is held for a request. */
  held(): Promise<void> {
    return this.world.until(async () => (await this.facts()).at(-1) === 'FundsHeld');
  }

  /** What became of the account's money since it came. */
  async facts(): Promise<readonly string[]> {
    return (await this.world.facts(this.account)).slice(3).map(({ type }) => type);
  }

  /** How many calls the provider bills. */
  async billed(): Promise<number> {
    return (await this.world.bill.total()).lines;
  }

  /** The claims and answers that are kept for the account. */
  async kept() {
    return (
      await this.database.query('select * from gateway.answers where payer_id = $1', [this.world.idOf(this.account)])
    ).rows;
  }

  change(set: string, values: readonly unknown[] = [], database: pg.Client | pg.Pool = this.database) {
    return database.query(`update gateway.answers set ${set} where payer_id = '${this.world.idOf(this.account)}'`, [
      ...values,
    ]);
  }

  /** While `asked` runs, no answer's `column` can be written. */
  async withFullDisk(column: 'answer' | 'held', asked: () => Promise<void>): Promise<void> {
    await this.database.query(`create function gateway.full() returns trigger language plpgsql as $$ begin
        raise exception 'the disk is full'; end $$;
      create trigger full_disk before update of ${column} on gateway.answers
        for each row execute function gateway.full()`);
    try {
      await asked();
    } finally {
      await this.database.query('drop function gateway.full cascade');
    }
  }

  private headers() {
    return { authorization: `Bearer ${this.account.apiKey}`, 'idempotency-key': this.key };
  }
}

function chatOf(directive: string, more: object = {}): object {
  return { model: 'openai/gpt-5-mini', messages: [{ role: 'user', content: `[[sandbox ${directive}]]` }], ...more };
}

async function readUpTo(enough: string, { body }: Response): Promise<void> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const piece of body ?? []) {
    text += decoder.decode(piece);
    if (text.includes(enough)) return;
  }
}
