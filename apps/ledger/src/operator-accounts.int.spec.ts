/** Accounts, API keys, credits and debits of the operator, from the command line to the API. */
import { randomBytes } from 'node:crypto';
import { userInfo } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type TestAccount, TestWorld } from '#testing';
import { parseLedgerCommand, runLedgerCommand } from './command-line.ts';

/** A model that costs 0.01 USD per request of any length. */
const FLAT = { model: 'countinghouse/flat' };
const ID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;

let world: TestWorld;
beforeAll(async () => {
  world = await TestWorld.openWithSagas();
});
afterAll(async () => {
  expect((await ledger('verify')).at(-1)).toBe('drift 0');
  await world.close();
});

const environment = () => ({ DATABASE_URL: world.databaseUrl, DATA_DIR: world.foundation.settings.dataDir });

/** Runs a command and returns the lines that it prints. @throws Error with its message for the operator */
async function ledger(...args: string[]): Promise<string[]> {
  const lines: string[] = [];
  await (await parseLedgerCommand(args, (line) => void lines.push(line)))?.(world.foundation);
  return lines;
}

async function createAccount(name: string): Promise<{ readonly id: string; readonly creditId: string }> {
  const [, id = '', creditId = ''] = await ledger('accounts', 'create', '--name', name);
  return { id: ID.exec(id)?.[0] as string, creditId: ID.exec(creditId)?.[0] as string };
}

async function createKey(account: string, ...options: string[]): Promise<string> {
  const [apiKey = '', ...more] = await ledger('keys', 'create', '--account', account, ...options);
  expect([apiKey, more]).toEqual([expect.stringMatching(/^sk-\w{22}$/), []]);
  return apiKey;
}

const credit = (account: string, usd: string, ...options: string[]) =>
  ledger('credit', account, '--usd', usd, '--reason', 'Budget of November', ...options);
const debit = (account: string, usd: string, ...options: string[]) =>
  ledger('debit', account, '--usd', usd, '--reason', 'Budget returned', ...options);
const toCaller = (apiKey: string, creditId = ''): TestAccount => ({ apiKey, creditId });

describe('an account of the operator', () => {
  test('has no keys and no money, and its credit_id, which is printed once, manages its keys', async () => {
    const { id, creditId } = await createAccount('team-a');
    const manage = (method: string, body?: object) =>
      world.send(method, '/keys', { headers: { 'x-credit-id': creditId }, body });
    expect((await manage('GET')).body.data).toEqual([]);
    const created = await manage('POST', { name: 'from the API', usage_limit_usd: 5 });
    expect(created.status).toBe(201);
    expect(await world.fetchBalance(toCaller(created.body.data.api_key))).toBe('0');
    expect((await ledger('account', 'team-a'))[0]).toBe(id);
    const stored = JSON.stringify(await world.listEvents(), (_, value) =>
      typeof value === 'bigint' ? `${value}` : value,
    );
    expect(stored).not.toContain(creditId);
    expect(await ledger('accounts')).toEqual([
      expect.stringMatching(/^account +balance +held +spent +keys$/),
      expect.stringMatching(/^team-a +0 +0 +0 +1$/),
    ]);
  });

  test.each(['team-a', 'TEAM-A'])('cannot have the name %s of another account', async (name) => {
    await expect(createAccount(name)).rejects.toThrow(/An account named "team-a|TEAM-A" already exists/);
  });

  test('gets its name only once when several commands give it at the same time', async () => {
    const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => createAccount('team-race')));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const [created] = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    expect((await ledger('account', 'team-race'))[0]).toBe(created?.id);
  });

  test.each(['', '1team', 'team a', 'a'.repeat(64), 'abcdef01-2345-4678-9abc-def012345678'])(
    'is not created with the name %j',
    async (name) => {
      const before = (await world.listEvents()).length;
      await expect(createAccount(name)).rejects.toThrow('--name must begin with a letter');
      expect(await world.listEvents()).toHaveLength(before);
    },
  );
});

describe('a credit', () => {
  test('funds an account by its name, its ids or the name of a key, and states reason and actor', async () => {
    const { id, creditId } = await createAccount('team-b');
    const apiKey = await createKey('team-b', '--name', 'key-of-b');
    expect(await credit('team-b', '100', '--id', 'b-1')).toEqual([
      '100 USD were credited to team-b, as b-1',
      'balance 100 USD, 0 USD held',
    ]);
    await credit(id, '0.000000000001');
    await credit(creditId, '1');
    await credit('key-of-b', '1', '--actor', 'Alice');
    expect(await world.fetchBalance(toCaller(apiKey))).toBe('102.000000000001');
    const [, first, , , last, ...totals] = await ledger('history', 'team-b');
    expect(first).toMatch(/^\S+Z +100 {2}operator b-1: Budget of November, by .+ \(unverified\)$/);
    expect(first).toContain(userInfo().username);
    expect(last).toMatch(/: Budget of November, by Alice \(unverified\)$/);
    expect(totals.map((line) => line.trim())).toEqual([
      '102.000000000001  in all',
      '0  charged for requests',
      '102.000000000001  balance, with what is held',
    ]);
    const adjustments = (await world.listEvents(toCaller(apiKey, creditId))).filter(
      ({ type }) => type === 'BalanceAdjusted',
    );
    expect(adjustments.at(-1)).toMatchObject({
      data: { reason: 'Budget of November', actor: { name: 'Alice', isVerified: false } },
      metadata: { actor: 'operator:Alice' },
    });
  });

  test('with an id is booked once, also when it is repeated at the same time', async () => {
    await createAccount('team-c');
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => credit('team-c', '5', '--id', 'c-1')));
    expect(outcomes.filter(([line]) => line === '5 USD were credited to team-c, as c-1')).toHaveLength(1);
    expect(outcomes.filter(([line]) => line === '5 USD were credited to team-c before, as c-1')).toHaveLength(4);
    await expect(credit('team-c', '6', '--id', 'c-1')).rejects.toThrow('c-1 was used for another adjustment');
    expect((await credit('team-c', '5', '--id', 'c-1'))[1]).toBe('balance 5 USD, 0 USD held');
  });

  test.each([
    ['no amount', ['--usd', 'much'], '--usd must be an amount above 0'],
    ['an amount of 0', ['--usd', '0'], '--usd must be an amount above 0'],
    ['a negative amount', ['--usd=-1'], '--usd must be an amount above 0'],
    ['a huge amount', ['--usd', '1000000000'], 'below 1000000000'],
    ['a fraction of a pico-USD', ['--usd', '0.0000000000001'], 'at most 12 decimal places'],
    ['an empty reason', ['--usd', '1', '--reason', ' '], '--reason must be a text'],
    ['a reason with a line break', ['--usd', '1', '--reason', 'a\nb'], '--reason must be a text'],
    ['a long reason', ['--usd', '1', '--reason', 'x'.repeat(501)], '--reason must be a text'],
    ['an invalid id', ['--usd', '1', '--id', 'a b'], '--id must consist of'],
    ['an empty actor', ['--usd', '1', '--actor', ''], '--actor must be a text'],
    ['a reason that reverses text', ['--usd', '1', '--reason', 'a\u202eb'], '--reason must be'],
    ['two amounts', ['--usd', '1', '--usd', '2'], '--usd must be given once'],
  ])('is rejected with %s', async (_, options, message) => {
    const before = (await world.listEvents()).length;
    await expect(
      ledger('credit', 'team-a', ...(options.includes('--reason') ? [] : ['--reason', 'Budget']), ...options),
    ).rejects.toThrow(message);
    expect(await world.listEvents()).toHaveLength(before);
  });

  test('is rejected for an account that does not exist, or for a key name of several accounts', async () => {
    await expect(credit('nobody', '1')).rejects.toThrow('There is no account "nobody"');
    for (const name of ['team-d', 'team-e']) {
      await createAccount(name);
      await createKey(name, '--name', 'shared');
    }
    await expect(credit('shared', '1')).rejects.toThrow('Several accounts have a key named "shared"');
  });
});

describe('an account that anyone opens over the API', () => {
  /** Names a key of a new account like something of the operator. */
  async function createStrangersKey(name: string): Promise<void> {
    const { creditId } = await world.createAccount();
    const { status } = await world.send('POST', '/keys', { headers: { 'x-credit-id': creditId }, body: { name } });
    expect(status).toBe(201);
  }

  test('gets no money and no key of the operator by naming a key like an account that does not exist', async () => {
    await createStrangersKey('team-future');
    await expect(credit('team-future', '25')).rejects.toThrow('There is no account "team-future"');
    await expect(createKey('team-future', '--name', 'x')).rejects.toThrow('There is no account "team-future"');
  });

  test('cannot prevent that a key is blocked or revoked by naming a key like its name or its id', async () => {
    await createAccount('team-leak');
    const caller = toCaller(await createKey('team-leak', '--name', 'leaked'));
    await credit('team-leak', '1');
    const id = (await ledger('keys', '--account', 'team-leak')).at(-1)?.trim().split(/ {2,}/)[2] as string;
    for (const name of ['leaked', id]) await createStrangersKey(name);
    const status = async () => (await world.sendChat(caller, 'tokens=1', FLAT)).status;
    await ledger('keys', 'block', 'leaked');
    expect(await status()).toBe(403);
    await ledger('keys', 'unblock', id);
    await world.waitUntil(async () => (await status()) === 200);
    await createKey('team-leak', '--name', id);
    await ledger('keys', 'revoke', id);
    expect(await status()).toBe(401);
  });
});

describe('a debit', () => {
  test('takes at most what is available, and leaves what running requests hold', async () => {
    await createAccount('team-f');
    await credit('team-f', '1');
    await expect(debit('team-f', '1.000000000001')).rejects.toThrow(
      'The account has only 1 USD available, less than 1.000000000001 USD.',
    );
    expect(await debit('team-f', '1')).toEqual([
      expect.stringMatching(/^1 USD were debited from team-f, as \S+$/),
      'balance 0 USD, 0 USD held',
    ]);
    await expect(debit('team-f', '0.01')).rejects.toThrow('has only 0 USD available');
  });

  test('and a credit can be reversed completely and once, and so can a reversal', async () => {
    await createAccount('team-g');
    await credit('team-g', '10', '--id', 'g-1');
    const reverse = (id: string, ...options: string[]) =>
      ledger('reverse', 'team-g', id, '--reason', 'Mistake', ...options);
    expect((await reverse('g-1'))[0]).toBe('10 USD were debited from team-g, as g-1-reversed');
    expect((await reverse('g-1'))[0]).toBe('10 USD were debited from team-g before, as g-1-reversed');
    await expect(reverse('g-1', '--id', 'other')).rejects.toThrow('g-1 was reversed before, by g-1-reversed');
    expect((await reverse('g-1-reversed'))[1]).toBe('balance 10 USD, 0 USD held');
    await debit('team-g', '9', '--id', 'g-2');
    await expect(reverse('g-1-reversed-reversed')).rejects.toThrow('has only 1 USD available');
    expect((await reverse('g-2'))[1]).toBe('balance 10 USD, 0 USD held');
    await expect(reverse('g-3')).rejects.toThrow('The account has no adjustment g-3');
  });

  test('is in the report of the wallets and in the trial balance, as funding by the operator', async () => {
    const report = (await ledger('wallets')).join('\n');
    expect(report).toMatch(/^by the operator, in USD +credited +debited +funding$/m);
    const [, credited, debited, funding] = /^operator +(\S+) +(\S+) +(\S+)$/m.exec(report) ?? [];
    expect(Number(credited) - Number(debited)).toBeCloseTo(Number(funding), 9);
    expect((await ledger('replay')).join('\n')).toMatch(new RegExp(`^funding:operator +${funding}$`, 'm'));
  });
});

describe('an API key of the operator', () => {
  test('works at once, and is capped, tagged and limited to its models', async () => {
    await createAccount('team-h');
    await credit('team-h', '10');
    const apiKey = await createKey(
      'team-h',
      '--name',
      'ci',
      '--limit',
      '0.02',
      '--reset',
      'monthly',
      '--expires',
      '2999-01-01',
      '--models',
      'countinghouse/flat,gpt-5-mini,google/*',
      '--tags',
      'team=search,cost centre=4711',
    );
    const caller = toCaller(apiKey);
    const send = (model: string) => world.sendChat(caller, 'tokens=1', { model, max_tokens: 1 });
    expect((await send('openai/gpt-4o-mini')).status).toBe(403);
    for (const status of [200, 200, 402]) expect((await send(FLAT.model)).status).toBe(status);
    const { lines, row } = await listKeys('team-h');
    expect(lines).toHaveLength(2);
    expect(row).toEqual([
      'team-h',
      'ci',
      expect.stringMatching(/^[0-9a-f]{24}$/),
      '0.02',
      '0.02',
      'monthly',
      '0.02',
      'active',
      'countinghouse/flat openai/gpt-5-mini google/* team=search cost centre=4711',
    ]);
  });

  test('can be blocked, unblocked and revoked by its name or id', async () => {
    const caller = toCaller(await createKey('team-h', '--name', 'night'));
    const status = async () => (await world.sendChat(caller, 'tokens=1', FLAT)).status;
    expect(await status()).toBe(200);
    expect(await ledger('keys', 'block', 'night')).toEqual(['night is blocked']);
    expect(await status()).toBe(403);
    const { row } = await listKeys('team-h', 'night');
    expect(row?.[7]).toBe('blocked');
    expect(await ledger('keys', 'unblock', row?.[2] as string)).toEqual(['night is not blocked']);
    await world.waitUntil(async () => (await status()) === 200);
    expect(await ledger('keys', 'revoke', 'night')).toEqual(['night is revoked']);
    expect(await status()).toBe(401);
    await expect(ledger('keys', 'block', 'night')).rejects.toThrow(
      'There is no API key with the id or, in an account with a name, the name "night"',
    );
    await expect(ledger('keys', 'block', 'shared')).rejects.toThrow('use the id of the key');
  });

  test.each([
    ['a taken name', ['--name', 'ci'], 'An active API key named "ci" already exists'],
    ['a long name', ['--name', 'x'.repeat(26)], 'name must have 1 to 25 characters'],
    ['a limit below 0.01 USD', ['--name', 'x', '--limit', '0.001'], '--limit must be at least 0.01'],
    ['a limit that is no amount', ['--name', 'x', '--limit', 'all'], '--limit must be an amount'],
    ['an unknown period', ['--name', 'x', '--limit', '1', '--reset', 'hourly'], '--reset must be one of'],
    ['a period without a limit', ['--name', 'x', '--reset', 'daily'], '--reset requires --limit'],
    ['a past expiry', ['--name', 'x', '--expires', '2020-01-01'], '--expires must be in the future'],
    ['an invalid expiry', ['--name', 'x', '--expires', 'soon'], '--expires must be'],
    ['an unknown model', ['--name', 'x', '--models', 'openai/gpt-6000'], '--models[0]: there is no model'],
    ['a tag twice', ['--name', 'x', '--tags', 'a=1,a=2'], '--tags must not have a name twice'],
    ['tags without values', ['--name', 'x', '--tags', 'search'], '--tags must be a list'],
  ])('is not created with %s', async (_, options, message) => {
    const before = (await world.listEvents()).length;
    await expect(ledger('keys', 'create', '--account', 'team-h', ...options)).rejects.toThrow(message);
    expect(await world.listEvents()).toHaveLength(before);
  });

  test('is not created without the master key of the installation', async () => {
    const run = (env: object) =>
      runLedgerCommand(
        ['keys', 'create', '--account', 'team-h', '--name', 'x'],
        { ...environment(), ...env },
        () => {},
      );
    await expect(run({ MASTER_KEY: randomBytes(32).toString('hex') })).rejects.toThrow(
      'lacks the key with the fingerprint',
    );
  });

  async function listKeys(account: string, name?: string) {
    const lines = await ledger('keys', '--account', account);
    const line = lines.slice(1).find((each) => name === undefined || each.includes(name));
    return { lines, row: line?.trim().split(/ {2,}/) };
  }
});

test('accounts without a name are counted, and listed on request', async () => {
  await world.createAccount();
  expect((await ledger('accounts')).at(-1)).toMatch(/^and \d+ accounts without a name, which --all lists$/);
  const all = await ledger('accounts', '--all');
  expect(all.some((line) => ID.test(line))).toBe(true);
  expect(all.at(-1)).not.toContain('without a name');
});
