import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import OpenAI from 'openai';
import { SettingError, StartError } from '#foundation';
import { money } from '#kernel';
import { ProjectionProgress } from '#projections';
import { openStandalone, TEST_DAY, waitUntil } from '#testing';
import { runLedgerCommand } from '../../ledger/src/command-line.ts';

const MAIN = path.resolve(import.meta.dirname, '../../../dist/apps/standalone/src/main.js');
const PROGRAM = [process.execPath, MAIN] as const;
/** Skips the build, which would disturb tests that run at the same time. */
const NPM_START = ['npm', 'start', '--silent', '--ignore-scripts'] as const;

type Settings = Readonly<Record<string, string>>;

let directory: string;
let dataDir: string;
const started: Program[] = [];
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-standalone-'));
  dataDir = path.join(directory, 'data');
});
afterAll(async () => {
  for (const program of started) program.send('SIGKILL');
  const left = await postmaster();
  if (left !== undefined) process.kill(left, 'SIGQUIT');
  await waitUntil(async () => (await postmaster()) === undefined);
  await rm(directory, { recursive: true });
});

/** Runs the built program on free ports, with `dataDir` and no drain delay; `settings` take precedence. */
class Program {
  private readonly child: ChildProcessByStdio<null, Readable, Readable>;
  private output = '';
  /** The text on standard error. */
  spoken = '';
  /** Resolves to the exit code. */
  readonly ended: Promise<number | null>;

  constructor(settings: Settings = {}, [command, ...args]: readonly [string, ...string[]] = PROGRAM) {
    const env = {
      PATH: process.env.PATH,
      PORT: '0',
      SANDBOX_PORT: '0',
      DATA_DIR: dataDir,
      DRAIN_DELAY_MS: '0',
      CATALOGUE_DAY: TEST_DAY,
      NODE_COMPILE_CACHE: path.join(directory, 'compile-cache'), // saves a quarter of the later starts
      ...settings,
    };
    this.child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.child.stdout.on('data', (piece) => {
      this.output += piece;
    });
    this.child.stderr.on('data', (piece) => {
      this.spoken += piece;
    });
    this.ended = new Promise((resolve) => this.child.once('close', resolve));
    started.push(this);
  }

  send(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  // biome-ignore lint/suspicious/noExplicitAny: a line has any fields
  get log(): any[] {
    const lines = this.output.split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line));
  }

  async ready(): Promise<this> {
    let over = false;
    void this.ended.then(() => {
      over = true;
    });
    await waitUntil(async () => over || this.log.some(({ msg }) => msg === 'ready'));
    if (over) throw new Error(`the process ended before it was ready: ${this.output}${this.spoken}`);
    return this;
  }

  get api(): string {
    return this.log.at(-1).api;
  }

  get sandbox(): string {
    return this.log.at(-1).sandbox;
  }

  client(apiKey: string): OpenAI {
    return new OpenAI({ apiKey, baseURL: `${this.api}/v1`, maxRetries: 0 });
  }
}

/** Returns the process id of the embedded database server; undefined if it does not run. */
async function postmaster(): Promise<number | undefined> {
  const file = await readFile(path.join(dataDir, 'postgres/postmaster.pid'), 'utf8').catch(() => '');
  const pid = Number(file.split('\n')[0]);
  try {
    return pid > 0 && process.kill(pid, 0) ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** Verifies the ledger. Returns the lines of the report, which ends with "drift 0" if it finds no difference. */
async function verify(): Promise<readonly string[]> {
  const lines: string[] = [];
  const isRight = await runLedgerCommand(['verify'], { DATA_DIR: dataDir }, (line) => void lines.push(line));
  expect(isRight).toBe(lines.at(-1) === 'drift 0');
  return lines;
}

// biome-ignore lint/suspicious/noExplicitAny: responses of all formats
async function post(url: string, body?: object, key?: string): Promise<any> {
  const headers = { 'content-type': 'application/json', ...(key ? { authorization: `Bearer ${key}` } : {}) };
  return (await fetch(url, { method: 'POST', headers, body: body ? JSON.stringify(body) : '' })).json();
}

/** The messages of a log, without those of a start that waits, as on a busy host. */
const withoutWaiting = (log: readonly { readonly msg: string }[]) =>
  log.map(({ msg }) => msg).filter((msg) => !msg.startsWith('the start is waiting'));

const asked = (directive: string) => [{ role: 'user' as const, content: `[[sandbox ${directive}]]` }];
const MODEL = 'openai/gpt-5-mini';

/** The tests are one scenario, in order: an account while the program is started, stopped and killed. */
describe('the program that `npm start` runs', () => {
  let program: Program;
  let key: string;
  /** USD: 5 paid, plus a bonus of 5 %. */
  const FUNDED = 5.25;
  /** Costs of the completed requests by request id. */
  const answered = new Map<string, number>();
  const remember = ({ id, usage }: { id: string; usage?: unknown }) => {
    answered.set(id.replace('gen-', ''), (usage as { cost: number }).cost);
  };

  async function balance(): Promise<{ readonly balance: number; readonly held_usd: number }> {
    return post(`${program.api}/credits/balance`, undefined, key);
  }

  async function history(): Promise<readonly { readonly request_id: string; readonly price_in_usd: number }[]> {
    const headers = { authorization: `Bearer ${key}` };
    const response = await fetch(`${program.api}/queries/history?page_count=100`, { headers });
    return ((await response.json()) as { data: [] }).data;
  }

  const total = (amounts: Iterable<number>) => [...amounts].reduce((sum, usd) => sum + money.parseUsd(usd), 0n);

  /** Checks that the history has every completed request once at its cost, and that all amounts add up. */
  async function expectNothingLost(): Promise<void> {
    const records = await history();
    for (const [id, cost] of answered) {
      expect(records.filter(({ request_id }) => request_id === id)).toEqual([
        expect.objectContaining({ price_in_usd: cost }),
      ]);
    }
    const { balance: left, held_usd } = await balance();
    expect(total([left, held_usd, ...records.map(({ price_in_usd }) => price_in_usd)])).toBe(money.parseUsd(FUNDED));
  }

  test('starts without external services, and logs `ready` last, with its URLs', async () => {
    program = await new Program().ready();
    expect(program.log.at(-1)).toMatchObject({
      level: 'info',
      msg: 'ready',
      api: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      sandbox: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    });
    await waitUntil(async () => (await fetch(`${program.api}/health/ready`)).ok);
  });

  test('prints its URLs and commands for a first paid request', () => {
    const { spoken, api, sandbox } = program;
    expect(spoken).toMatch(/^\n {2}Countinghouse, a demonstration: all providers and payments are simulated\n/);
    for (const each of [
      `${api}/v1\n`,
      sandbox,
      `${api}/accounts/create`,
      `${sandbox}/wallet/pay`,
      '/v1/chat/completions',
    ]) {
      expect(spoken).toContain(each);
    }
  });

  test('creates an account and credits a Lightning payment', async () => {
    key = (await post(`${program.api}/accounts/create`)).api_key;
    const invoice = await post(`${program.api}/topup/create/btc-lightning`, { amount: 5, currency: 'USD' }, key);
    await post(`${program.sandbox}/wallet/pay`, { invoice: invoice.lightning_invoice });
    await waitUntil(async () => (await balance()).balance > 0);
    expect(await balance()).toMatchObject({ balance: FUNDED, held_usd: 0 });
  });

  test("serves OpenAI's client with models, a chat and a stream", async () => {
    const client = program.client(key);
    expect((await client.models.list()).data.map(({ id }) => id)).toContain(MODEL);
    const chat = await client.chat.completions.create({ model: MODEL, messages: asked('tokens=3') });
    expect(chat.choices[0]?.message.content).toBe('every coin that');
    remember(chat);
    const stream = client.chat.completions.stream({ model: MODEL, messages: asked('tokens=3') });
    expect(await stream.finalContent()).toBe('every coin that');
    remember(await stream.finalChatCompletion());
  });

  test('charges exactly the costs that it returns', async () => {
    expect(answered.size).toBe(2);
    expect(money.parseUsd((await balance()).balance)).toBe(money.parseUsd(FUNDED) - total(answered.values()));
    await expectNothingLost();
  });

  test('has drift 0 while it runs', async () => {
    expect((await verify()).at(-1)).toBe('drift 0');
  });

  test('finishes a running stream on SIGTERM and exits with code 0', async () => {
    const messages = asked('tokens=12 chunk_delay=30');
    const stream = program.client(key).chat.completions.stream({ model: MODEL, messages });
    stream.once('content', () => program.send('SIGTERM'));
    const completion = await stream.finalChatCompletion();
    expect(completion.usage?.completion_tokens).toBe(12);
    remember(completion);
    expect(await program.ended).toBe(0);
    expect(withoutWaiting(program.log)).toEqual(['ready', 'draining', 'stopped']);
    expect(await postmaster()).toBeUndefined();
  });

  test('has the balance and all completed requests of the account after a restart', async () => {
    program = await new Program().ready();
    await expectNothingLost();
    expect(await history()).toHaveLength(3);
  });

  test('loses no completed request if it is killed under load together with its database', async () => {
    const client = program.client(key);
    const requests = Array.from({ length: 30 }, async (_, i) => {
      const body = { model: 'countinghouse/flat', messages: asked(`latency=${i < 12 ? 10 * i : 60_000}`) };
      remember(await client.chat.completions.create(body));
      if (answered.size === 10) {
        program.send('SIGKILL');
        process.kill((await postmaster()) as number, 'SIGKILL');
      }
    });
    const outcomes = await Promise.allSettled(requests);
    expect(outcomes.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(0);
    await program.ended;
    const isApplied = jest.spyOn(ProjectionProgress.prototype, 'waitUntilApplied').mockResolvedValue(false);
    const lines = await verify(); // the read models may lack the latest events, and no process applies them now
    isApplied.mockRestore();
    expect(lines.filter((line) => /^difference(?!.* has not applied \d+ events)/.test(line))).toEqual([]);
    expect(await postmaster()).toBeUndefined();
    program = await new Program({ SHUTDOWN_TIMEOUT_MS: '200' }).ready();
    await expectNothingLost();
    expect((await verify()).at(-1)).toBe('drift 0');
  });

  describe('does not start', () => {
    const file = () => path.join(directory, 'file');
    const damaged = () => path.join(directory, 'damaged');
    beforeAll(async () => {
      await writeFile(file(), '');
      await mkdir(path.join(damaged(), 'postgres'), { recursive: true });
      await writeFile(path.join(damaged(), 'postgres/PG_VERSION'), '17\n');
    });

    test.each<[string, () => Settings, RegExp]>([
      ['an invalid number', () => ({ PORT: 'abc' }), /^PORT must be an integer from 0 to 65535, not "abc"\.$/],
      [
        'a sandbox port that is in use',
        () => ({ SANDBOX_PORT: new URL(program.sandbox).port }),
        /^Port \d+ is already in use; .* set SANDBOX_PORT\.$/,
      ],
    ])('with %s: it logs the reason in one sentence and exits with code 1', async (_, settings, sentence) => {
      const failing = new Program(settings());
      expect(await failing.ended).toBe(1);
      const fatal = failing.log.filter(({ level }) => level === 'fatal');
      expect(fatal).toEqual([expect.objectContaining({ msg: expect.stringMatching(sentence) })]);
      expect(fatal[0]).not.toHaveProperty('err');
      expect(failing.spoken).toBe('');
    });

    /** All errors of these types end the program as in the tests above. */
    test.each<[string, () => Settings, new (message: string) => Error, RegExp]>([
      [
        'an invalid choice',
        () => ({ LOG_LEVEL: 'loud' }),
        SettingError,
        /^LOG_LEVEL must be one of info, .*, not "loud"\.$/,
      ],
      [
        'a port that is in use',
        () => ({ PORT: new URL(program.api).port }),
        StartError,
        /^Port \d+ is already in use; .* set PORT\.$/,
      ],
      [
        'a data directory that is a file',
        () => ({ DATA_DIR: file() }),
        StartError,
        /^The data directory .*\/file cannot be used: .*\.$/,
      ],
      [
        'a damaged database',
        () => ({ DATA_DIR: damaged() }),
        StartError,
        /^The embedded database in .*\/damaged\/postgres does not start: .*\.$/,
      ],
      [
        'an event store whose certificate authority is missing',
        () => ({ EVENTSTORE_URL: 'esdb://admin:secret@127.0.0.1:1?tlsCAFile=/does/not/exist' }),
        StartError,
        /^EVENTSTORE_URL cannot be used: .* File was not found\.$/,
      ],
    ])('with %s', async (_, settings, type, sentence) => {
      const error = await openStandalone({ DATA_DIR: dataDir, ...settings() }).catch((reason) => reason);
      expect(error).toBeInstanceOf(type);
      expect(error.message).toMatch(sentence);
    });
  });

  test('aborts and settles a stream that exceeds the shutdown timeout after SIGINT', async () => {
    const body = { model: MODEL, input: 'Loads the tables of the tokenizer, which takes long on a busy machine.' };
    expect(await post(`${program.api}/v1/responses/input_tokens`, body, key)).toMatchObject({ input_tokens: 21 });
    const chat = request(`${program.api}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    });
    chat.end(JSON.stringify({ model: MODEL, messages: asked('tokens=64 chunk_delay=5000'), stream: true }));
    const [response] = (await once(chat, 'response')) as [IncomingMessage];
    let received = '';
    // Not by `fetch`, which drops what it has not read when the connection is closed.
    response.setEncoding('utf8').on('data', (text: string) => {
      received += text;
    });
    await waitUntil(async () => received.split('"delta"').length > 2);
    program.send('SIGINT');
    await expect(once(response, 'end')).rejects.toThrow('aborted');
    expect(received).toContain('shutting down');
    expect(await program.ended).toBe(0);
    const lines = await verify();
    expect(lines.at(-1)).toBe('drift 0');
    expect(lines).toContainEqual(expect.stringMatching(/charges audited, 1 of them estimates$/));
  });

  test('shuts down gracefully if npm receives two signals', async () => {
    const started = await new Program({}, NPM_START).ready();
    started.send('SIGTERM');
    started.send('SIGINT');
    await waitUntil(async () => started.log.at(-1)?.msg === 'stopped');
    expect(withoutWaiting(started.log)).toEqual(['ready', 'draining', 'stopped']);
    expect(await postmaster()).toBeUndefined();
  });
});
