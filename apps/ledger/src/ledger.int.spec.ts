import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { Clock, Streams } from '#application';
import { verify } from '#audit';
import { type ChallengeCommand, toPostings } from '#domain';
import { PostgresEventStore } from '#eventstore';
import { issueFencingToken } from '#foundation';
import { formatUsd, NO_STREAM, type PicoUsd, parseUsd, type StreamHead } from '#kernel';
import { type Projection, projections, READ_MODEL_CONNECTION_OPTIONS, rebuild } from '#projections';
import {
  createIssuedChallenge,
  ProgressRecorder,
  shiftClock,
  TEST_CAUSE,
  type TestAccount,
  type TestResponse,
  TestWorld,
} from '#testing';
import { parseLedgerCommand, runLedgerCommand as runLedger } from './command-line.ts';
import { skipBlockingEvent } from './skip.ts';

const BUILT = path.resolve(import.meta.dirname, '../../../dist/apps/ledger/src/main.js');
/** A model that costs 0.01 USD per request of any length. */
const FLAT = { model: 'countinghouse/flat' };
const HOUR = 3_600_000;

let world: TestWorld;
let database: pg.Pool;
const [OWED, HELD, INCOME] = [1, 2, 3].map((nr) => `10000000-0000-4000-8000-00000000000${nr}`) as [
  string,
  string,
  string,
];
let rich: TestAccount;
let poor: TestAccount;
let third: TestAccount;
/** Requests that are still running when the world is closed, so that their holds stay open. */
let waiting: Promise<TestResponse>[];
/** Position and time after the accounts were funded and before the first request. */
let funded: { readonly position: bigint; readonly time: string };

beforeAll(async () => {
  world = await TestWorld.openWithSagas({ SHUTDOWN_TIMEOUT_MS: '0' });
  database = new pg.Pool({ connectionString: world.databaseUrl, max: 1, options: READ_MODEL_CONNECTION_OPTIONS });
  rich = await world.createPaidAccount(10.5);
  poor = await world.createPaidAccount(1.05);
  third = await world.createPaidAccount(10.5);
  for (const each of [rich, third])
    await world.connectWallet(each, await world.createNwcWallet(), { threshold_usd: 5 });
  funded = { position: (await world.listEvents()).at(-1)?.position ?? 0n, time: new Date().toISOString() };
  await world.waitUntil(async () => new Date().toISOString() > funded.time); // no request may have this time
  await use();
  await payOnce();
  const end = (await world.listEvents()).at(-1)?.position;
  await world.waitUntil(async () => (await one('select min(position) from checkpoints')) === String(end));
});
afterAll(async () => {
  await database.end();
  await world.close();
  await Promise.all(waiting);
});

/** Makes six charges (two of them are estimates), one failed request, and two requests that stay open. */
async function use(): Promise<void> {
  const headers = { 'x-credit-id': rich.creditId };
  const key = (await world.send('POST', '/keys', { headers, body: { name: 'limited', usage_limit_usd: 0.05 } })).body;
  await world.sendChat({ ...rich, apiKey: key.data.api_key }, '', FLAT);
  for (const directive of ['tokens=8', 'fault=400', 'fault=no_usage', 'fault=cut tokens=8'])
    await world.sendChat(rich, directive, { stream: true });
  await world.sendChat(rich, 'tokens=8');
  await world.sendChat(poor, '', FLAT);
  await world.send('DELETE', `/keys/${key.data._id}`, { headers });
  waiting = [world.sendChat(rich, 'fault=timeout', FLAT), world.sendChat(poor, 'fault=timeout', FLAT)];
  await world.waitUntil(async () => (await one('select count(*) from holds')) === '2');
}

/** Pays three challenges: one that is unused, one whose request is running, and one that is forfeited. */
async function payOnce(): Promise<void> {
  const { challenges, paymentClaims } = world.getService(Streams);
  const now = Date.now();
  const time = (inMs: number) => new Date(now + inMs).toISOString();
  const at = time(0);
  const price = parseUsd('0.0115');
  for (const id of [OWED, HELD, INCOME]) {
    const run = (command: ChallengeCommand) => challenges.run(id, command, TEST_CAUSE);
    const expires = { expiresAt: time(HOUR), usableUntil: time(id === INCOME ? -1 : HOUR) };
    const issued = createIssuedChallenge({ reference: id, paymentHash: id, ...expires, at });
    const { query, request, units } = issued;
    await run({ type: 'IssueChallenge', data: issued });
    const claim = { payment: { backend: 'lnd', id }, claimant: `challenge-${id}`, at };
    await paymentClaims.run(`lnd/${id}`, { type: 'ClaimPayment', data: claim }, TEST_CAUSE);
    await run({ type: 'RecordChallengePayment', data: { units: BigInt(units), at } });
    const terms = { holdId: `hold of ${id}`, request, maxAmount: price, query, expiresAt: time(HOUR) };
    if (id === HELD) await run({ type: 'ClaimChallenge', data: { ...terms, at } });
    if (id === INCOME) await run({ type: 'ForfeitChallenge', data: { usableBefore: at, at } });
  }
}

async function one(sql: string): Promise<string> {
  return String(Object.values((await database.query(sql)).rows[0] ?? {})[0]);
}

interface Ended {
  readonly code: number;
  readonly lines: readonly string[];
  readonly complaint: string;
}

/** The settings with which the command line finds the database of the world. */
const environment = () => ({ DATABASE_URL: world.databaseUrl, DATA_DIR: world.foundation.settings.dataDir });

/** Runs a command in this process. */
async function ledger(...args: string[]): Promise<Ended> {
  const lines: string[] = [];
  const run = async () => (await parseLedgerCommand(args, (line) => void lines.push(line)))?.(world.foundation);
  const isRight = await run().catch((error) => error.message);
  return { code: isRight === true ? 0 : 1, lines, complaint: typeof isRight === 'string' ? isRight : '' };
}

/** Runs a command with the built program. */
function builtLedger(...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [BUILT, ...args], { env: environment() }, (error, output, complaint) => {
      resolve({ code: error ? Number(error.code) : 0, lines: output.split('\n').slice(0, -1), complaint });
    });
  });
}

describe('verify', () => {
  test('replays all events, compares all rows and prints drift 0', async () => {
    const facts = await world.listEvents();
    const lines = facts.reduce((sum, fact) => sum + toPostings(fact.stream, fact).length, 0);
    expect(await builtLedger('verify')).toEqual({
      code: 0,
      complaint: '',
      lines: [
        `${facts.length} events replayed`,
        `trial balance: ${lines} lines, sum 0 USD`,
        '3 accounts with postings, 3 holds open, 0 of them past their expiry',
        '3 challenges paid, 0.023 USD of them held or owed',
        '6 charges audited, 2 of them estimates',
        '0 payments were recorded more than once',
        '0 payments were reported for another top-up or challenge, which got nothing',
        'balances: 3 rows compared',
        `journal: ${lines} rows compared`,
        'keys: 4 rows compared',
        'queries: 7 rows compared',
        'topups: 3 rows compared',
        'holds: 3 rows compared',
        'autotopups: 2 rows compared',
        'video_jobs: 0 rows compared',
        'challenges: 3 rows compared',
        'videos: 0 rows compared',
        expect.stringMatching(/^query_counts: [1-9]\d* rows compared$/),
        'drift 0',
      ],
    });
  });

  test('reports how many of the events are replayed', async () => {
    const { tasks, start } = new ProgressRecorder();
    await verify(world.foundation, () => {}, start);
    const total = Number((await world.listEvents()).at(-1)?.position);
    expect(tasks).toEqual([{ name: 'verify', total, unit: 'events', done: total, isFinished: true }]);
  });

  const NOBODY = '00000000-0000-4000-8000-000000000000';
  test.each([
    ['balances', 'account_id', 'available', '42', { account_id: NOBODY }],
    ['journal', 'position, line', 'account', 'revenue:tips', { position: 0 }],
    ['keys', 'key_id', 'used_in_all', '42', { key_id: 'added' }],
    ['queries', 'position', 'price', '42', { position: 0 }],
    ['topups', 'topup_id', 'credited', '42', { topup_id: 'added', reference: 'added' }],
    ['holds', 'hold_id', 'amount', '42', { hold_id: 'added' }],
    ['challenges', 'challenge_id', 'available', '42', { challenge_id: 'added' }],
    ['autotopups', 'account_id', 'threshold', '42', { account_id: NOBODY }],
  ])('reports a changed, a deleted and an added row of %s', async (...tampering) => {
    const [table, order, column, wrong, added] = tampering;
    const first = `select ctid from ${table} order by ${order} limit 1`;
    const last = `select ctid from ${table} order by ${order.replace(',', ' desc,')} desc limit 1`;
    await database.query(`update ${table} set ${column} = $1 where ctid = (${first})`, [wrong]);
    await database.query(`delete from ${table} where ctid = (${last})`);
    await database.query(`insert into ${table} select (json_populate_record(t, $1)).* from ${table} t limit 1`, [
      added,
    ]);

    const { code, lines, complaint } = await ledger('verify');
    const differences = lines.filter((line) => line.startsWith('difference: '));
    const [key, value] = Object.entries(added)[0] ?? [];
    expect(differences).toContainEqual(expect.stringMatching(`${table} has .*${column}=${wrong}.* instead of `));
    expect(differences).toContainEqual(expect.stringMatching(`${table} lacks `));
    expect(differences).toContainEqual(
      expect.stringMatching(`${table} has .*${key}=${value} .*, which no event explains$`),
    );
    expect(differences).toHaveLength(3);
    expect([code, lines.at(-1), complaint]).toEqual([1, 'drift 3', '']);

    const projection = projections.find(({ name }) => name === table);
    if (projection) {
      const { store, databaseUrl } = world.foundation;
      await rebuild(projection, {
        store,
        databaseUrl,
        issueFencingToken: () => issueFencingToken(databaseUrl, 'projector'),
      });
    }
  });

  test('reports an incorrect and a missing count of the query history, which a rebuild of the history repairs', async () => {
    const order = 'order by account_id, key_id limit 1';
    const { rows } = await database.query(
      `update query_counts set records = records + 1 where ctid = (select ctid from query_counts where key_id = '' ${order})
       returning account_id, records, day::text`,
    );
    const [{ account_id: account, records, day }] = rows;
    const removed = await database.query(
      `delete from query_counts where ctid = (select ctid from query_counts where key_id <> '' ${order})
       returning account_id, key_id, records, day::text`,
    );
    const [missing] = removed.rows;
    const { code, lines } = await ledger('verify');
    expect([code, lines.at(-1)]).toEqual([1, 'drift 2']);
    expect(lines.filter((line) => line.startsWith('difference: ')).toSorted()).toEqual(
      [
        `difference: query_counts has ${records} records on ${day} for account ${account}, and queries has ${records - 1}`,
        `difference: query_counts has 0 records on ${missing.day} for key ${missing.key_id} of account ${missing.account_id}, and queries has ${missing.records}`,
      ].toSorted(),
    );
    const { store, databaseUrl } = world.foundation;
    const issueToken = () => issueFencingToken(databaseUrl, 'projector');
    const queries = projections.find(({ name }) => name === 'queries') as Projection;
    await rebuild(queries, { store, databaseUrl, issueFencingToken: issueToken });
    expect((await ledger('verify')).lines.at(-1)).toBe('drift 0');
  });

  test('reports no differences after the read models were rebuilt', async () => {
    const { code, lines } = await ledger('verify');
    expect([code, lines.at(-1)]).toEqual([0, 'drift 0']);
  });
});

const table = ({ lines }: Ended) => lines.map((line) => line.split(/\s{2,}/));

describe('replay', () => {
  test('prints every balance and the trial balance as of a position', async () => {
    const facts = (await world.listEvents()).filter(({ position }) => position <= funded.position);
    const ended = await ledger('replay', '--until', String(funded.position));
    const balances = [
      [world.getAccountId(rich), '10.5', '0'],
      [world.getAccountId(poor), '1.05', '0'],
      [world.getAccountId(third), '10.5', '0'],
    ];
    expect(table(ended)).toEqual([
      [`As of position ${funded.position}: ${facts.length} events, 3 accounts with postings`],
      [''],
      ['account', 'available USD', 'held USD'],
      ...balances.toSorted(([a = ''], [b = '']) => (a < b ? -1 : 1)),
      [''],
      ['trial balance', 'debit USD', 'credit USD'],
      ['bonus:btc-lightning', '1.05'],
      ['clearing:btc-lightning', '21'],
      ['customer:available', '22.05'],
      ['sum', '22.05', '22.05'],
      ['difference', '0'],
    ]);
    expect(ended).toMatchObject({ code: 0, complaint: '' });
  });

  test.each([
    ['in UTC', (time: string) => time],
    ['in another zone', (time: string) => `${new Date(Date.parse(time) + 3_600_000).toISOString().slice(0, -1)}+01:00`],
  ])('prints the same balances as of a time %s', async (_, written) => {
    const asOfPosition = await ledger('replay', '--until', String(funded.position));
    expect(await ledger('replay', '--until', written(funded.time))).toEqual(asOfPosition);
  });

  test('prints the current amounts by default, which are equal to those of the service', async () => {
    const ended = table(await ledger('replay'));
    expect(ended).toContainEqual([world.getAccountId(rich), await world.fetchBalance(rich), '0.01']);
    expect(ended).toContainEqual([world.getAccountId(poor), '1.03', '0.01']);
    expect(ended.at(-1)).toEqual(['difference', '0']);
    const { rows } = await database.query(
      'select account, sum(amount) from journal group by account having sum(amount) <> 0',
    );
    for (const { account, sum } of rows) {
      const amount = BigInt(sum);
      expect(ended).toContainEqual([account, formatUsd((amount < 0n ? -amount : amount) as PicoUsd)]);
    }
  });

  test('prints no accounts before the first event', async () => {
    const { code, lines } = await ledger('replay', '--until', '0');
    expect([code, lines[0]]).toEqual([0, 'As of the beginning: 0 events, 0 accounts with postings']);
  });
});

describe('challenges', () => {
  test('lists owed, held and forfeited amounts with the totals of the trial balance', async () => {
    const { code, lines } = await ledger('challenges');
    const line = (start: RegExp) => expect.stringMatching(start);
    expect([code, lines]).toEqual([
      0,
      [
        '2 payments are unused or partly used: 0.0115 USD are owed, 0.0115 USD are held',
        '2 can still be used or are in use: 0.0115 USD are owed, 0.0115 USD are held',
        line(new RegExp(`${OWED}  paid, web/search: 0.0115 USD owed, until .*, btc-lightning at lnd as ${OWED}$`)),
        line(new RegExp(`${HELD}  running, web/search: 0 USD owed, 0.0115 USD held, until `)),
        '0 can no longer be used: 0 USD are owed, 0 USD are held; unused amounts stay owed, because UNCLAIMED_AFTER_DAYS is not set',
        '1 became income, 0.0115 USD (revenue:unclaimed)',
        line(new RegExp(`${INCOME}  web/search: 0.0115 USD, paid by btc-lightning at lnd as ${INCOME}$`)),
      ],
    ]);
    const sums = table(await ledger('replay'));
    for (const account of ['challenge:available', 'challenge:held', 'revenue:unclaimed'])
      expect(sums).toContainEqual([account, '0.0115']);
    expect(sums.flat()).not.toContain(OWED);
  });
});

describe('wallets', () => {
  test('prints what each payment backend should hold as of a position', async () => {
    const { code, lines } = await ledger('wallets', '--until', String(funded.position));
    const facts = (await world.listEvents()).filter(({ position }) => position <= funded.position);
    expect([code, ...lines.map((line) => line.split(/\s{2,}/))]).toEqual([
      0,
      [`As of position ${funded.position}: ${facts.length} events`],
      [''],
      ['lnd', 'BTC', 'sat'],
      ['received', '0.00021', '21000'],
      ['reversed', '0', '0'],
      ['fees', '0', '0'],
      ['should hold', '0.00021', '21000'],
      [''],
      ['by method, in USD', 'gained by rates', 'lost by rates', 'fees'],
      [''],
      ['0 payments were recorded more than once'],
      ['0 payments were reported for another top-up or challenge, which got nothing'],
    ]);
  });
});

test('autotopup prints every step of an automatic top-up without the secret of the wallet', async () => {
  const account = await world.createAccount();
  const wallet = await world.createNwcWallet({ mode: 'fails, then pays' });
  await world.connectWallet(account, wallet);
  const stream = `autotopup-${world.getAccountId(account)}`;
  await world.waitUntil(async () =>
    (await world.listEvents()).some((event) => event.stream === stream && event.type === 'WalletAnswered'),
  );
  const setBack = shiftClock(world.getService(Clock), 10_000); // the next request is due
  await world.waitUntil(async () => (await world.getAutoTopup(account)).body.last_attempt?.state === 'paid');
  setBack();
  expect(await ledger('account', account.creditId)).toMatchObject({ code: 0, lines: [world.getAccountId(account)] });
  const { code, lines } = await ledger('autotopup', account.creditId);
  const topup = (await world.getAutoTopup(account)).body.last_attempt.invoice_id;
  expect([code, lines.map((line) => line.replace(/^\S+ {2}/, ''))]).toEqual([
    0,
    [
      `wallet ${wallet.id} connected: 10 USD whenever the balance is below 10 USD`,
      `attempt 1 starts: 10 USD, because the balance is 0 USD; top-up ${topup}`,
      expect.stringMatching(/^attempt 1 has an invoice, which expires at \S+Z$/),
      `attempt 1, request 1: about to be sent to wallet ${wallet.id} (fencing token …)`.replace(
        '…',
        lines.join().match(/token (\d+)/)?.[1] ?? '',
      ),
      'attempt 1, request 1: sent',
      'attempt 1, request 1: the wallet responds PAYMENT_FAILED: No route was found in time',
      expect.stringMatching(/^attempt 1, request 2: about to be sent to wallet /),
      'attempt 1, request 2: sent',
      'attempt 1, request 2: the wallet responds PAID',
      'attempt 1 ends: paid',
    ],
  ]);
});

describe('an invalid call prints nothing and fails with a sentence, and with the usage if it cannot be parsed:', () => {
  const of = (command: string) => `Usage: npm run ledger -- ${command}`;
  const usage = of('<command>');
  const until = '--until must be a position or an ISO 8601 time.';
  test.each<[string[], string]>([
    [[], usage],
    [['audit'], `Unknown command 'audit' (Did you mean credit?).\n${usage}, and --help lists the commands`],
    [['keys', 'drop', 'one'], `Unknown command 'drop'.\n${of('keys [--account <account>]')}`],
    [['keys', 'drop', 'one', '--actor', 'me'], "Unknown command 'drop'."],
    [['accounts', '--all', 'create', '--name', 'a'], "Option '--all' cannot be used with 'create'."],
    [['verify', 'balances'], of('verify')],
    [['verify', '--until', '1'], of('verify')],
    [['autotopup'], `Missing required argument 'account'.\n${of('autotopup <account>')}`],
    [['autotopup', 'one', 'two'], of('autotopup <account>')],
    [['autotopup', 'one', '--until', '1'], of('autotopup <account>')],
    [['account', OWED], `There is no account "${OWED}", and no account with a name that has a key`],
    [['autotopup', 'nobody'], 'There is no account "nobody"'],
    [['replay', '--until', 'yesterday'], until],
    [['replay', '--until', '1.5'], until],
    [['wallets', '--until', '1.5'], until],
    [['replay', '--until', '11/21/2026'], until],
    [['replay', '--until', '2026-02-30'], until],
    [['replay', '--until'], "Option '--until <ISO 8601 time or position>' argument missing."],
    [['credit', 'one', '--usd', '1', '--reason', '--id'], 'write --reason=--id if it begins with a dash'],
    [['credit', 'one', '--usd', '1', '--reason', '--help'], "Option '--reason <text>' argument missing"],
    [['credit', 'one', '--usd', '-5', '--reason', 'x'], '--usd must be an amount above 0'],
    [['keys', 'block', '-one'], "Unknown option '-one' (an argument that begins with a dash must follow --)."],
    [['keys', 'block', '--', '-one'], 'There is no API key with the id or, in an account with a name, the name "-one"'],
    [['keys', 'block', '--actor=-', '--', '--help'], 'the name "--help"'],
    [['keys', '--account=--one'], 'There is no account "--one"'],
    [['history', '-1'], 'There is no account "-1"'],
    [['replay', '--since', '2026-11-20'], of('replay [--until <ISO 8601 time or position>]')],
    [['accruals', '--since', '1'], '--since must be an ISO 8601 time.'],
    [['costs', '--since', '1'], '--since must be an ISO 8601 time.'],
    [['replay', '--from', '1'], "Unknown option '--from'"],
    [['skip', 'topups', '1'], of('skip <read model> <position> --why <text>')],
  ])('ledger %j', async (args, complaint) => {
    const ended = await ledger(...args);
    expect(ended).toMatchObject({ code: 1, lines: [] });
    expect(ended.complaint).toContain(complaint);
    expect(ended.complaint).not.toContain('[options]');
  });
});

test('master-keys forget rejects a configured key; account reports a missing key, not an unknown account', async () => {
  const [line = ''] = (await ledger('master-keys')).lines;
  const [id = ''] = line.split(':');
  expect(line).toMatch(/: in use, since /);
  expect((await ledger('master-keys', 'forget', id)).complaint).toContain('remove it');
  const elsewhere = async (env: Readonly<Record<string, string>>) =>
    runLedger(['account', OWED], { ...environment(), ...env }, () => {}).catch((error) => error.message);
  expect(await elsewhere({ MASTER_KEY: randomBytes(32).toString('hex') })).toContain(
    `lacks the key with the fingerprint ${id}`,
  );
  const empty = path.join(world.foundation.settings.dataDir, 'elsewhere');
  expect(await elsewhere({ DATA_DIR: empty })).toContain(id);
  expect(await readdir(empty)).toEqual([]);
  await expect(TestWorld.openWithSagas({ DATABASE_URL: world.databaseUrl, DATA_DIR: empty })).rejects.toThrow(
    `DATA_DIR has no master.key, but the installation uses the key with the fingerprint ${id}`,
  );
  expect(await readdir(empty)).not.toContain('master.key');
});

test('the built program prints its usage only to standard error, without a database', async () => {
  const { code, lines, complaint } = await builtLedger('audit');
  expect([code, lines]).toEqual([1, []]);
  expect(complaint).toMatch(/^Unknown command 'audit' .*\nUsage: npm run ledger -- <command>, [^\n]+\n$/);
});

test('--help lists the commands with their arguments, and needs no database', async () => {
  const run = async (...args: string[]) => {
    const printed: string[] = [];
    const isSuccessful = await runLedger(args, { DATABASE_URL: 'no address' }, (line) => void printed.push(line));
    return { isSuccessful, text: printed.join('\n') };
  };
  const all = await run('--help');
  expect(all).toEqual({ isSuccessful: true, text: expect.stringContaining('Usage: npm run ledger -- <command>\n') });
  expect(all.text).toContain('\n  keys block <key> [--actor <name>]\n      Blocks an API key.\n');
  const { text } = await run('keys', 'block', '--help');
  expect(text).toMatch(/^Usage: npm run ledger -- keys block <key> \[--actor <name>\]\n\nBlocks an API key\.\n/);
  expect(text).toContain('\n  key\n      An API key: its id, or its name if no other key has it.\n');
});

describe('an unknown event', () => {
  test('is a difference for verify and an error for replay', async () => {
    const store = new PostgresEventStore({ connectionString: world.databaseUrl });
    const unknown = { id: crypto.randomUUID(), type: 'CreditVanished', data: {}, metadata: {} };
    await store.append(`account-${crypto.randomUUID()}`, NO_STREAM, [unknown]);
    await store.close();
    const { code, lines } = await ledger('verify');
    expect([code, lines.at(-1)]).toEqual([1, 'drift 1']);
    expect(lines.at(-2)).toMatch(
      /^difference: the event at position \d+, .* CreditVanished, which this build cannot read/,
    );
    expect(await ledger('replay')).toMatchObject({ code: 1, complaint: expect.stringMatching(/CreditVanished/) });
  });
});

test('verify reports an event that a read model cannot apply, and one that was skipped', async () => {
  const topup = `topup-${crypto.randomUUID()}`;
  const { rows } = await database.query(`select data, metadata from es.events where type = 'InvoiceIssued' limit 1`);
  const data = { ...rows[0].data, units: '9'.repeat(39) };
  const store = new PostgresEventStore({ connectionString: world.databaseUrl });
  const poison = { id: crypto.randomUUID(), type: 'InvoiceIssued', data, metadata: rows[0].metadata };
  const position = String(((await store.append(topup, NO_STREAM, [poison])) as StreamHead).position);
  await store.close();
  const stopped = async () => (await world.get('/health/ready')).body.checks.read_models.stopped;
  await world.waitUntil(async () => (await stopped()).length > 0);
  expect(await stopped()).toEqual([`topups at ${position}`]);
  const paying = await world.createAccount();
  const wish = { amount: 1, currency: 'USD' };
  await world.payInvoice((await world.post('/topup/create/btc-lightning', wish, paying)).body.lightning_invoice);
  await world.waitUntil(async () => (await world.fetchBalance(paying)) === '1.05'); // does not depend on `topups`
  const verified = async () => {
    const lines: string[] = [];
    await verify(world.foundation, (line) => void lines.push(line));
    return lines.filter((line) => line.includes('topups has') || line.startsWith('drift 0'));
  };
  const line = (text: string) => expect.stringMatching(new RegExp(`^difference: topups has ${text}`));
  const numbers = '\\d+ events; it is blocked by the event at position';
  expect(await verified()).toEqual([line(`not applied ${numbers} ${position}: numeric field overflow$`)]);

  const said: string[] = [];
  const say = (line: string) => void said.push(line);
  await expect(
    skipBlockingEvent(world.foundation, { readModel: 'topups', position: '1', reason: 'x' }, say),
  ).rejects.toThrow(`the event at position ${position}`);
  // Without the trigger, the projector would record at its next attempt that it is blocked.
  const unblock = () =>
    database.query(`
      create function books.unblock() returns trigger language plpgsql as $$ begin new.stopped_at := null; return new; end $$;
      create trigger unblock before update on books.checkpoints for each row execute function books.unblock();
      update books.checkpoints set stopped_at = null`);
  const blockAgain = () =>
    database.query(`
      drop function books.unblock() cascade;
      update books.checkpoints set stopped_at = ${position} where projection = 'topups'`);
  const { databaseUrl, store: opened } = world.foundation;
  const rawReader = {
    ...opened.rawReader,
    async *readAll(from: bigint) {
      await unblock(); // another person has rebuilt the read model in the meantime
      yield* opened.rawReader.readAll(from);
    },
  };
  await expect(
    skipBlockingEvent(
      { databaseUrl, store: { ...opened, rawReader } },
      { readModel: 'topups', position, reason: 'x' },
      say,
    ),
  ).rejects.toThrow(`topups is no longer blocked by the event at position ${position}`);
  await blockAgain();
  expect(said).toEqual([]);
  await skipBlockingEvent(world.foundation, { readModel: 'topups', position, reason: 'case 7' }, say);
  expect(said[0]).toBe(`topups skips the event at position ${position}, a InvoiceIssued of ${topup}`);
  await world.waitUntil(async () => (await stopped()).length === 0);
  expect(await verified()).toEqual([
    line(`skipped the event at position ${position}.*: case 7 \\(\\S+@\\S+, \\S+Z\\)$`),
  ]);
});
