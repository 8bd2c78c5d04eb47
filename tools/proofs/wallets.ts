/**
 * `npm run prove:wallets [-- MOMENTS]`: wallets of eleven kinds are connected at once. During their first payments, a
 * gateway or sagas process is killed (SIGKILL), or paused for longer than a lease (SIGSTOP, SIGCONT), at six times or
 * the first MOMENTS of these. A wallet that can pay makes exactly one payment, which is credited within 30 s after the
 * process runs again. The other wallets make none. Then 500 concurrent charges that cross the threshold cause one
 * payment, and 64 open holds cause none. A key with a limit has no access to the wallet of its account. No log contains
 * the secret of a wallet or a preimage.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Customer, ProofCluster, post } from '../cluster.ts';

const WITHIN_MS = 30_000;
/** Longer than a lease, which lasts eight seconds. */
const STOPPED_MS = 12_000;
const POLL_INTERVAL_MS = 20;
const SETTLING_MS = 3_000;
const MOMENTS_MS = [0, 100, 250, 500, 800, 1_500];
const TOPUP_USD = 10.5;
const EXPENSIVE_MODEL = 'anthropic/claude-opus-4.7';

/** Options of the sandbox's wallet, and whether it pays. */
const MODES: readonly (readonly [options: object, pays: boolean])[] = [
  [{ mode: 'pays' }, true],
  [{ mode: 'pays', encryption: 'nip04' }, true],
  [{ mode: 'pays late', delay_ms: 2_500 }, true],
  [{ mode: 'fails, then pays' }, true],
  [{ mode: 'pays silently' }, true],
  [{ mode: 'answers twice' }, true],
  [{ mode: 'forged' }, true],
  [{ mode: 'drops' }, true],
  [{ mode: 'drops its answer' }, true],
  [{ mode: 'quota' }, false],
  [{ mode: 'never answers' }, false],
];

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const print = (line: string) => void process.stdout.write(`${line}\n`);

interface MonitoredWallet {
  readonly customer: Customer;
  readonly walletId: string;
  readonly pays: boolean;
  readonly mode: string;
}

interface AutoTopupView {
  readonly state: string;
  readonly last_attempt: { readonly state: string; readonly requests: number } | null;
}

type InjectedFault = 'killed' | 'stopped and woken';

class Proof {
  /** Numbers of attempts by their state at the time of a fault. */
  readonly statesAtFault = new Map<string, number>();
  readonly problems: string[] = [];
  slowestMs = 0;
  payments = 0;
  /** Secrets of wallet connections and preimages, which no log may contain. */
  private readonly secrets = new Set<string>();
  /** The output of processes that were killed. */
  private readonly logs: (readonly string[])[] = [];

  constructor(readonly cluster: ProofCluster) {}

  /** The gateway that was started last. */
  private get observer(): string {
    return this.cluster.gateways.at(-1) as string;
  }

  async runRound(victim: string, fault: InjectedFault, delayMs: number): Promise<void> {
    const wallets = await Promise.all(MODES.map(([options, pays]) => this.createWallet(options, pays)));
    const connecting = wallets.map((wallet) => this.connect(wallet));
    await sleep(delayMs);
    await this.recordStates(wallets);
    await this.strike(victim, fault);
    const back = performance.now();
    await Promise.all(connecting);
    for (const wallet of wallets) if (wallet.pays) await this.waitForCredit(wallet, back);
    await sleep(200);
    for (const wallet of wallets) await this.checkWallet(wallet, `${victim} ${fault} after ${delayMs} ms`);
  }

  private async createWallet(options: object, pays: boolean): Promise<MonitoredWallet> {
    const customer = await this.cluster.createCustomer(0);
    const wallet = await post(`${this.cluster.sandbox}/nwc/wallets`, options);
    this.urls.set(customer, String(wallet.nwc_url));
    this.secrets.add(new URL(String(wallet.nwc_url)).searchParams.get('secret') ?? '');
    return { customer, walletId: String(wallet.id), pays, mode: JSON.stringify(options) };
  }

  private readonly urls = new Map<Customer, string>();

  /**
   * Connects a wallet. If the first gateway does not respond with 200 in time, the same request is sent to the other
   * gateway.
   */
  private async connect({ customer }: MonitoredWallet): Promise<void> {
    const body = { nwc_url: this.urls.get(customer) };
    const [first = ''] = this.cluster.gateways;
    for (const api of [first, this.observer]) {
      const headers = { 'content-type': 'application/json', 'x-credit-id': customer.creditId };
      const request = { method: 'POST', headers, body: JSON.stringify(body), signal: AbortSignal.timeout(8_000) };
      // the next gateway is tried
      const response = await fetch(`${api}/nwc-auto-topup/connect`, request).catch(() => undefined);
      if (response?.status === 200) return;
    }
    this.problems.push('a wallet could not be connected');
  }

  private async recordStates(wallets: readonly MonitoredWallet[]): Promise<void> {
    for (const { customer } of wallets) {
      const { last_attempt } = await this.fetchAutoTopup(customer);
      const at = last_attempt === null ? 'before the attempt' : last_attempt.state;
      this.statesAtFault.set(at, (this.statesAtFault.get(at) ?? 0) + 1);
    }
  }

  private async strike(victim: string, fault: InjectedFault): Promise<void> {
    const process_ = this.cluster.processes.get(victim);
    if (!process_) throw new Error(`no process is called ${victim}`);
    if (fault === 'killed') {
      this.logs.push(process_.outputChunks);
      await process_.kill();
      this.cluster.processes.delete(victim);
      await this.cluster.startRole(victim.split(' ')[0] as string, victim);
      return;
    }
    process.kill(process_.pid, 'SIGSTOP');
    await sleep(STOPPED_MS);
    process.kill(process_.pid, 'SIGCONT');
  }

  async fetchAutoTopup({ creditId }: Customer): Promise<AutoTopupView> {
    const headers = { 'x-credit-id': creditId };
    return (await (await fetch(`${this.observer}/nwc-auto-topup`, { headers })).json()) as AutoTopupView;
  }

  async fetchBalance({ creditId }: Customer): Promise<number> {
    const response = await post(`${this.observer}/credits/balance`, { credit_id: creditId });
    return Number(response.balance);
  }

  private async waitForCredit({ customer, mode }: MonitoredWallet, since: number): Promise<void> {
    while ((await this.fetchBalance(customer)) < TOPUP_USD) {
      if (performance.now() - since > WITHIN_MS) {
        this.problems.push(`${mode}: not credited within ${WITHIN_MS / 1000} s`);
        print((await this.cluster.runLedger('autotopup', customer.creditId)).output);
        return;
      }
      await sleep(POLL_INTERVAL_MS);
    }
    this.slowestMs = Math.max(this.slowestMs, performance.now() - since);
  }

  private async checkWallet({ customer, walletId, pays, mode }: MonitoredWallet, when: string): Promise<void> {
    const { payments } = await this.fetchWallet(walletId);
    const balance = await this.fetchBalance(customer);
    this.payments += payments.length;
    for (const { preimage } of payments) this.secrets.add(preimage);
    if (payments.length !== (pays ? 1 : 0)) this.problems.push(`${mode}, ${when}: ${payments.length} payments`);
    if (balance !== (pays ? TOPUP_USD : 0)) this.problems.push(`${mode}, ${when}: balance ${balance}`);
  }

  async fetchWallet(id: string): Promise<{ readonly payments: readonly { readonly preimage: string }[] }> {
    return (await (await fetch(`${this.cluster.sandbox}/nwc/wallets/${id}`)).json()) as never;
  }

  /** Searches the logs of all roles, at the most detailed level, for secrets. */
  searchLogs(): void {
    const roles = [...this.cluster.processes]
      .filter(([name]) => name !== 'sandbox')
      .map(([, { outputChunks }]) => outputChunks);
    const logText = [...this.logs, ...roles]
      .map((chunks) => chunks.join(''))
      .join('\n')
      .toLowerCase();
    const leaked = [...this.secrets].filter((secret) => logText.includes(secret));
    print(
      `${logText.length} characters of logs contain ${leaked.length} of ${this.secrets.size} secrets and preimages`,
    );
    if (leaked.length > 0) this.problems.push('the logs contain a secret');
  }

  /** Creates an account with 10.5 USD, and connects a wallet that pays. */
  async openFundedWallet(threshold: number): Promise<MonitoredWallet> {
    const wallet = await this.createWallet({ mode: 'pays' }, true);
    await this.cluster.fund(wallet.customer, 10);
    const headers = { 'content-type': 'application/json', 'x-credit-id': wallet.customer.creditId };
    const body = JSON.stringify({ nwc_url: this.urls.get(wallet.customer), threshold_usd: threshold });
    await fetch(`${this.observer}/nwc-auto-topup/connect`, { method: 'POST', headers, body });
    return wallet;
  }

  async sendChat({ apiKey }: Customer, directive: string, maxTokens: number, model = EXPENSIVE_MODEL): Promise<void> {
    const messages = [{ role: 'user', content: `[[sandbox ${directive}]]` }];
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` };
    const body = JSON.stringify({ model, messages, max_tokens: maxTokens });
    const response = await fetch(`${this.observer}/v1/chat/completions`, { method: 'POST', headers, body });
    await response.text();
    if (response.status !== 200) this.problems.push(`a chat got the status ${response.status}`);
  }

  async proveBurst(): Promise<void> {
    const { customer, walletId } = await this.openFundedWallet(8);
    await Promise.all(Array.from({ length: 500 }, () => this.sendChat(customer, 'tokens=400', 400)));
    const spent = 2 * TOPUP_USD - (await this.waitForTopup(customer));
    await sleep(SETTLING_MS);
    const { payments } = await this.fetchWallet(walletId);
    print(`500 concurrent charges of ${spent.toFixed(2)} USD in total cross the threshold: ${payments.length} payment`);
    if (payments.length !== 1) this.problems.push(`a burst led to ${payments.length} payments`);
  }

  private async waitForTopup(customer: Customer): Promise<number> {
    const deadline = performance.now() + WITHIN_MS;
    while ((await this.fetchAutoTopup(customer)).last_attempt?.state !== 'paid' && performance.now() < deadline)
      await sleep(50);
    return this.fetchBalance(customer);
  }

  async proveHolds(): Promise<void> {
    const { customer, walletId } = await this.openFundedWallet(5);
    const waiting = Array.from({ length: 64 }, () => this.sendChat(customer, 'tokens=1 latency=4000', 4_000));
    await sleep(1_000);
    await this.sendChat(customer, 'tokens=1', 1, 'openai/gpt-5-mini'); // a charge causes a check of the balance
    const { held_usd } = await this.cluster.fetchBalance(customer);
    await Promise.all(waiting);
    await sleep(SETTLING_MS);
    const { payments } = await this.fetchWallet(walletId);
    print(`64 open holds of ${held_usd} USD in total, balance 10.5 USD, threshold 5 USD: ${payments.length} payments`);
    if (payments.length !== 0 || held_usd < 5.6) this.problems.push('open holds caused a payment, or held too little');
  }

  /** A key with a limit is refused every operation on the wallet of its account, on every gateway. */
  async proveGuestKey(): Promise<void> {
    const { customer } = await this.openFundedWallet(5);
    const json = { 'content-type': 'application/json' };
    const limited = JSON.stringify({ name: 'guest', usage_limit_usd: 0.01 });
    const owner = { ...json, 'x-credit-id': customer.creditId };
    const created = await fetch(`${this.observer}/keys`, { method: 'POST', headers: owner, body: limited });
    const { data } = (await created.json()) as { readonly data: { readonly api_key: string } };
    const before = JSON.stringify(await this.fetchAutoTopup(customer));
    const headers = { ...json, authorization: `Bearer ${data.api_key}` };
    const body = JSON.stringify({ nwc_url: this.urls.get(customer), threshold_usd: 1_000 });
    const statuses: number[] = [];
    for (const api of this.cluster.gateways) {
      const connection = `${api}/nwc-auto-topup/connection`;
      statuses.push((await fetch(`${api}/nwc-auto-topup`, { headers })).status);
      statuses.push((await fetch(`${api}/nwc-auto-topup/connect`, { method: 'POST', headers, body })).status);
      statuses.push((await fetch(connection, { method: 'DELETE', headers })).status);
    }
    print(`a key with a limit on the wallet of its account: ${statuses.join(' ')}`);
    if (statuses.some((status) => status !== 401)) this.problems.push('a key with a limit has access to the wallet');
    if (JSON.stringify(await this.fetchAutoTopup(customer)) !== before)
      this.problems.push('a key with a limit changed the wallet of its account');
  }
}

async function prove(dataDir: string): Promise<boolean> {
  const cluster = await ProofCluster.start(dataDir, 2, { LOG_LEVEL: 'trace' });
  try {
    await cluster.startRole('sagas', 'sagas 2');
    const proof = new Proof(cluster);
    const rounds = (['gateway 1', 'sagas', 'sagas 2'] as const).flatMap((victim) =>
      (['killed', 'stopped and woken'] as const).map((fault) => [victim, fault] as const),
    );
    for (const [victim, fault] of rounds) {
      for (const delayMs of MOMENTS_MS.slice(0, Number(process.argv[2] ?? MOMENTS_MS.length))) {
        await proof.runRound(victim, fault, delayMs);
      }
      print(
        `${victim} ${fault}: ${proof.problems.length} problems so far, slowest ${(proof.slowestMs / 1000).toFixed(1)} s`,
      );
    }
    await proof.proveBurst();
    await proof.proveHolds();
    await proof.proveGuestKey();
    proof.searchLogs();
    const hit = [...proof.statesAtFault].map(([state, times]) => `${state} ${times}×`).join(', ');
    print(`states of attempts at the time of a fault: ${hit}; ${proof.payments} payments`);
    const { code, output } = await cluster.runLedger('verify');
    print(output.trim());
    for (const [problem, times] of Map.groupBy(proof.problems, (problem) => problem))
      print(`PROBLEM ${times.length}× ${problem}`);
    return proof.problems.length === 0 && code === 0;
  } finally {
    await cluster.stop();
  }
}

const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-wallets-'));
if (!(await prove(dataDir))) process.exitCode = 1;
await rm(dataDir, { recursive: true });
