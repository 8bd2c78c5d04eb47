/**
 * Runs the roles and the sandbox in this process, for tests of vertical slices: a test sends HTTP requests and checks
 * the responses and the stored events. PostgreSQL, HTTP and the event store are real. The sandbox simulates all third
 * parties.
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { INestApplicationContext } from '@nestjs/common';
import {
  Clock,
  FileStore,
  generateFileId,
  LinkSigner,
  MAX_LINK_LIFETIME_MS,
  Secrets,
  Streams,
  toAccountIds,
  toFilePath,
} from '#application';
import { readProviders } from '#catalogue';
import { ACCOUNT, type DomainEvent } from '#domain';
import { createLog, Foundation, type SecretWatch, type Settings, SettingsReader } from '#foundation';
import { NO_STREAM, parseUsd, START_POSITION, type StoredEvent } from '#kernel';
import { openRole } from '#modules';
import { nodeRandomness } from '#runtime';
import { openGateway } from '../../../../apps/gateway/src/gateway.ts';
import { ProjectorModule } from '../../../../apps/projector/src/projector.module.ts';
import { SagasModule } from '../../../../apps/sagas/src/sagas.module.ts';
import { startSandbox } from '../../../../apps/sandbox/src/sandbox.ts';
import { ContractGate } from '../provider-contracts/gate.ts';
import { TEST_CAUSE } from '../test-cause.ts';
import { waitUntil } from '../wait-until.ts';
import { SandboxBillReader } from './sandbox-bill.ts';
import { type EnvironmentVariables, resolveSandboxSettings } from './sandbox-settings.ts';
import { SandboxTraffic } from './sandbox-traffic.ts';
import { copyCatalogue, TEST_DAY } from './test-catalogue.ts';
import { createMigratedDatabase } from './test-database.ts';
import { readResponse, type TestResponse } from './test-response.ts';

/** Raises the limits per IP address, because all requests of a test come from one address. */
const UNLIMITED = {
  ACCOUNTS_PER_HOUR: '1000000',
  INVOICES_PER_HOUR_OF_ADDRESS: '1000000',
  WRONG_CREDENTIALS_PER_MINUTE: '1000000',
};

export interface TestAccount {
  readonly creditId: string;
  readonly apiKey: string;
}

export interface TestWallet {
  readonly id: string;
  readonly nwc_url: string;
}

interface Parts {
  readonly app: INestApplicationContext;
  readonly secrets: SecretWatch;
  readonly contracts: ContractGate;
  readonly traffic: SandboxTraffic;
  readonly hasSagas: boolean;
}

interface WorldOptions {
  readonly environment: EnvironmentVariables | ((sandbox: string) => Promise<EnvironmentVariables>);
  readonly models: readonly object[];
  readonly hasSagas: boolean;
}

export class TestWorld {
  /** For tests that have a world and import nothing else. */
  readonly waitUntil = waitUntil;
  /** The events up to `position`. They do not change, so each is read once. */
  private readonly events: StoredEvent<DomainEvent>[] = [];
  private position = START_POSITION;
  private reading = Promise.resolve();

  private constructor(
    readonly api: string,
    readonly sandbox: string,
    private runningParts: Parts | undefined,
    private readonly resources: AsyncDisposableStack,
  ) {}

  private get parts(): Parts {
    if (!this.runningParts) throw new Error('the world is closed');
    return this.runningParts;
  }

  /**
   * Opens a world with a gateway and a projector. Top-ups, videos and other workflows need `openWithSagas`.
   * @param environment settings that differ from the defaults, or a function that creates them from the sandbox's URL
   * @param models models to add to the shipped catalogue
   */
  static open(environment: WorldOptions['environment'] = {}, models: WorldOptions['models'] = []): Promise<TestWorld> {
    return TestWorld.build({ environment, models, hasSagas: false });
  }

  /** Like `open`, also with the workflows and sweeps, which take most of the CPU time of an idle world. */
  static openWithSagas(
    environment: WorldOptions['environment'] = {},
    models: WorldOptions['models'] = [],
  ): Promise<TestWorld> {
    return TestWorld.build({ environment, models, hasSagas: true });
  }

  private static async build(options: WorldOptions): Promise<TestWorld> {
    const resources = new AsyncDisposableStack();
    try {
      return await TestWorld.start(options, resources);
    } catch (error) {
      await resources.disposeAsync();
      throw error;
    }
  }

  private static async start(
    { environment: environmentOrFactory, models, hasSagas }: WorldOptions,
    resources: AsyncDisposableStack,
  ): Promise<TestWorld> {
    const closeOnExit = <T extends { close(): Promise<void> }>(running: T): T => {
      resources.defer(() => running.close());
      return running;
    };
    const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-world-'));
    resources.defer(() => rm(directory, { recursive: true }));
    const catalogue = path.join(directory, 'catalogue');
    if (models.length > 0) await copyCatalogue(catalogue, models);
    const contracts = new ContractGate();
    resources.defer(async () => contracts.assertNone());
    const traffic = new SandboxTraffic();
    const onRequest: RequestListener = (...exchange) => {
      contracts.onRequest(...exchange);
      traffic.onRequest(...exchange);
    };
    const sandbox = closeOnExit(await startSandbox({ port: 0, onRequest }));
    const environment =
      typeof environmentOrFactory === 'function' ? await environmentOrFactory(sandbox.url) : environmentOrFactory;
    const isGiven = environment.DATABASE_URL !== undefined || environment.DATABASE_URL_FILE !== undefined;
    const variables = {
      ...(isGiven ? {} : { DATABASE_URL: await createDatabase(resources) }),
      DATA_DIR: directory,
      PORT: '0',
      SANDBOX_PORT: new URL(sandbox.url).port,
      CATALOGUE_DAY: TEST_DAY,
      LOG_LEVEL: 'fatal',
      DRAIN_DELAY_MS: '0',
      SHUTDOWN_TIMEOUT_MS: '2000',
      ...UNLIMITED,
      PRIVATE_SOURCES: sandbox.url,
      ...(models.length > 0 ? { CATALOGUE_DIR: catalogue } : {}),
      ...resolveSandboxSettings(environment, sandbox.url),
    };
    const reader = new SettingsReader(readProviders);
    const settings = reader.read(variables);
    const role = closeOnExit(
      await openRole('world', settings, createLog(settings.logLevel), async (role) => {
        const secrets = role.watchSecrets(variables, reader);
        return { ...(await openGateway(role, ProjectorModule, ...(hasSagas ? [SagasModule] : []))), secrets };
      }),
    );
    const { api, app, secrets } = role;
    return new TestWorld(api, sandbox.url, { app, secrets, contracts, traffic, hasSagas }, resources);
  }

  get foundation(): Foundation {
    return this.parts.app.get(Foundation);
  }

  /** Checks all calls to simulated providers; closing the world fails if one deviates from their contracts. */
  get contracts(): ContractGate {
    return this.parts.contracts;
  }

  get databaseUrl(): string {
    return this.foundation.databaseUrl;
  }

  /** Reads what the simulated providers would invoice. */
  get bill(): SandboxBillReader {
    return new SandboxBillReader(this.sandbox);
  }

  /** The requests that the sandbox has received. */
  get traffic(): SandboxTraffic {
    return this.parts.traffic;
  }

  async close(): Promise<void> {
    await this.resources.disposeAsync();
    this.runningParts = undefined; // the variables of a spec file, such as its world, stay in memory
  }

  /**
   * Stops the clock of all roles. Then streams of workflows become due only by events and hints, apart from timers that
   * are due already.
   * @returns a function that restarts the clock
   */
  stopClock(): () => void {
    const clock = this.parts.app.get(Clock);
    const at = clock.nowMs();
    Object.defineProperty(clock, 'nowMs', { value: () => at, configurable: true });
    return () => void Reflect.deleteProperty(clock, 'nowMs');
  }

  /** Applies secrets in files that have changed, as a process does every few seconds. */
  readSecretsAgain(): Promise<void> {
    return this.parts.secrets.poll();
  }

  /** Starts another gateway on the same stores, and closes it with the world. @returns its URL */
  async addGateway(settings: Partial<Settings> = {}): Promise<string> {
    const gateway = await this.startGateway(settings);
    this.resources.defer(() => gateway.close());
    return gateway.api;
  }

  /** Starts another gateway on the same stores. The caller must close it. */
  async startGateway(
    settings: Partial<Settings> = {},
  ): Promise<{ readonly api: string; readonly audioApi: string; close(): Promise<void> }> {
    const { databaseUrl, log } = this.foundation;
    const gatewaySettings = { ...this.foundation.settings, databaseUrl, port: 0, ...settings };
    return openRole('gateway', gatewaySettings, log, (role) => openGateway(role));
  }

  /** Opens an account and credits `usd` to it, as the operator does, which is faster than `createPaidAccount`. */
  async createAccount(usd = 0): Promise<TestAccount> {
    const { credit_id, api_key } = (await this.post('/accounts/create', undefined)).body;
    const account = { creditId: credit_id as string, apiKey: api_key as string };
    if (usd > 0) await this.credit(account, usd);
    return account;
  }

  /** Opens an account and pays a top-up over Lightning that credits `usd`, including the bonus of 5 %. */
  async createPaidAccount(usd: number): Promise<TestAccount> {
    const account = await this.createAccount();
    await this.fund(account, usd / 1.05);
    return account;
  }

  /** Credits `usd` by an adjustment of the operator. */
  async credit(account: TestAccount, usd: number): Promise<void> {
    const amount = parseUsd(Number(usd.toFixed(12)));
    const at = this.getService(Clock).now();
    const data = {
      adjustmentId: randomUUID(),
      amount,
      reason: 'A test',
      actor: { name: 'test', isVerified: false },
      at,
    };
    await this.getService(Streams).accounts.run(
      this.getAccountId(account),
      { type: 'AdjustBalance', data },
      TEST_CAUSE,
    );
  }

  /** Returns the internal id of an account, as used in events and tables. */
  getAccountId({ creditId }: TestAccount): string {
    return toAccountIds(creditId, this.parts.app.get(Secrets))[0];
  }

  /** Pays a top-up of `usd`, to which a bonus is added, and waits until it is credited. */
  async fund(account: TestAccount, usd: number): Promise<void> {
    if (!this.parts.hasSagas) throw new Error('this world credits no payments: open it with sagas');
    const amount = Number(usd.toFixed(12));
    const created = await this.post('/topup/create/btc-lightning', { amount, currency: 'USD' }, account);
    if (created.status !== 201) throw new Error(`no invoice: ${created.status} ${created.text}`);
    const invoice = created.body;
    await this.payInvoice(invoice.lightning_invoice as string);
    await this.waitUntil(async () => (await this.get(`/topup/status/${invoice.invoice_id}`)).body.status === 'Settled');
  }

  async payInvoice(invoice: string, options: object = {}): Promise<TestResponse> {
    return readResponse(await fetch(`${this.sandbox}/wallet/pay`, toRequestInit({ invoice, ...options })));
  }

  /** Creates a customer's wallet with Nostr Wallet Connect. @param options such as `{ mode: 'fails, then pays' }` */
  async createNwcWallet(options: object = {}): Promise<TestWallet> {
    return (await readResponse(await fetch(`${this.sandbox}/nwc/wallets`, toRequestInit(options)))).body;
  }

  /** Returns the numbers of payment requests and requested invoices of a wallet, and its payments. */
  async getWalletUsage({
    id,
  }: TestWallet): Promise<{ requests: number; invoices: number; payments: readonly { preimage: string }[] }> {
    return (await readResponse(await fetch(`${this.sandbox}/nwc/wallets/${id}`))).body;
  }

  async connectWallet(account: TestAccount, { nwc_url }: TestWallet, settings: object = {}): Promise<TestResponse> {
    const body = { nwc_url, ...settings };
    return this.send('POST', '/nwc-auto-topup/connect', { body, headers: createOwnerHeaders(account) });
  }

  getAutoTopup(account: TestAccount): Promise<TestResponse> {
    return this.send('GET', '/nwc-auto-topup', { headers: createOwnerHeaders(account) });
  }

  async fetchBalance(account: TestAccount): Promise<string> {
    const response = await this.post('/credits/balance', undefined, account);
    return JSON.stringify(response.body.balance);
  }

  /** Requests a chat completion. @param directive controls the sandbox, such as `tokens=8 fault=cut` */
  sendChat(account: TestAccount, directive = '', extra: object = {}, api = this.api): Promise<TestResponse> {
    const content = directive === '' ? 'Hello' : `[[sandbox ${directive}]]`;
    const body = { model: 'openai/gpt-5-mini', messages: [{ role: 'user', content }], ...extra };
    return this.post('/v1/chat/completions', body, account, api);
  }

  post(route: string, body: unknown, account?: TestAccount, api = this.api): Promise<TestResponse> {
    return this.send('POST', route, { body, headers: createAuthHeaders(account), api });
  }

  get(route: string, account?: TestAccount): Promise<TestResponse> {
    return this.send('GET', route, { headers: createAuthHeaders(account) });
  }

  /** Sends a request. A body is sent as JSON, or unchanged if it is text, bytes or a form. */
  async send(
    method: string,
    route: string,
    { body, headers, api = this.api }: SendOptions = {},
  ): Promise<TestResponse> {
    const json = toRequestInit(body);
    return readResponse(await fetch(`${api}${route}`, { ...json, method, headers: { ...json.headers, ...headers } }));
  }

  /** Stores a file for a day. @returns the path and query of its signed URL */
  async storeFile(bytes: Uint8Array, mediaType: string): Promise<string> {
    const until = this.parts.app.get(Clock).nowMs() + MAX_LINK_LIFETIME_MS;
    const id = generateFileId(nodeRandomness, 'gen', until);
    await this.parts.app.get(FileStore).save({ id, n: 0, mediaType, bytes });
    return `${toFilePath(id, 0)}?${this.parts.app.get(LinkSigner).createQuery('file', toFilePath(id, 0), until)}`;
  }

  /** Returns the service that implements a port. */
  getService<T>(port: { readonly prototype: T }): T {
    return this.parts.app.get(port as never);
  }

  /** Returns all events so far, of one account's stream or of all streams. */
  async listEvents(account?: TestAccount): Promise<readonly StoredEvent<DomainEvent>[]> {
    if (!account) {
      this.reading = this.reading.catch(() => {}).then(() => this.readNewEvents());
      await this.reading;
      return [...this.events];
    }
    const events: StoredEvent<DomainEvent>[] = [];
    for (const id of toAccountIds(account.creditId, this.parts.app.get(Secrets)))
      events.push(...(await this.listStream(`${ACCOUNT}-${id}`)));
    return events;
  }

  /** Returns all events of a stream so far. */
  async listStream(stream: string): Promise<readonly StoredEvent<DomainEvent>[]> {
    const events: StoredEvent<DomainEvent>[] = [];
    for await (const page of this.foundation.store.read(stream, NO_STREAM)) events.push(...(page as typeof events));
    return events;
  }

  private async readNewEvents(): Promise<void> {
    for await (const { events, position } of this.foundation.store.readAll(this.position)) {
      this.events.push(...(events as typeof this.events));
      this.position = position;
    }
  }
}

async function createDatabase(resources: AsyncDisposableStack): Promise<string> {
  const database = await createMigratedDatabase();
  resources.defer(() => database.drop());
  return database.url;
}

interface SendOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly api?: string;
}

function toRequestInit(body: unknown) {
  if (body instanceof FormData) return { method: 'POST', headers: {}, body };
  const headers: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
  const text = typeof body === 'string' || body instanceof Uint8Array ? (body as string) : JSON.stringify(body);
  return { method: 'POST', headers, ...(body === undefined ? {} : { body: text }) };
}

/** The credential of the account itself, without the limits of its keys. */
function createOwnerHeaders({ creditId }: TestAccount): Record<string, string> {
  return { 'x-credit-id': creditId };
}

function createAuthHeaders(account: TestAccount | undefined): Record<string, string> {
  return account ? { authorization: `Bearer ${account.apiKey}` } : {};
}
