/**
 * `npm run prove:funding`: an account is credited and debited by commands of the ledger while it pays for 1,000
 * requests. Commands are repeated and killed, and gateways are killed. Each adjustment is booked once, every complete
 * response is charged once, a debit of more than the balance is rejected, and all reports agree on the balance.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { formatUsd, money, type PicoUsd } from '#kernel';
import { type Customer, ProofCluster } from '../cluster.ts';
import { countCharges, waitForCharges } from './clients/charged.ts';
import { ACCOUNT, adjust, calculateChange, planAdjustments, runAdjustments } from './funding/adjustments.ts';
import { waitUntil } from './role-checks.ts';

const GATEWAYS = 3;
const REQUESTS = 1_000;
const ADJUSTMENTS = 20;
const WORKERS = 16;
const MAX_LATENCY_MS = 1_200;
const RETRY_DELAY_MS = 20;
const OPENING_CREDIT = { id: 'opening', verb: 'credit', usd: '100' } as const;
/** More than the balance at any time. */
const EXCESSIVE_USD = '1000';
const OVERDRAFTS = 4;
const OVERDRAFT_MESSAGE = /^The account has only [\d.]+ USD available, less than [\d.]+ USD\.\n$/;

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const print = (line: string) => void process.stdout.write(`${line}\n`);
const pick = <T>(choices: readonly T[]): T => choices[Math.floor(Math.random() * choices.length)] as T;

const problems: string[] = [];
function check(isRight: boolean, problem: string): void {
  if (!isRight) problems.push(problem);
}

interface Load {
  readonly customer: Customer;
  /** Ids of the requests with a complete response. */
  readonly completedIds: string[];
  /** Statuses of responses other than 200, and `interrupted`, with their numbers. */
  readonly failures: Map<string, number>;
  sent: number;
}

// --- load -----------------------------------------------------------------------------------------------------------

/** Sends one request after the other until enough are sent and `work` has ended. */
async function runWorker(cluster: ProofCluster, load: Load, work: { readonly hasEnded: boolean }): Promise<void> {
  while (load.sent < REQUESTS || !work.hasEnded) {
    const { gateways } = cluster;
    if (gateways.length === 0) {
      await sleep(RETRY_DELAY_MS);
      continue;
    }
    load.sent++;
    const failure = await sendRequest(pick(gateways), load).catch(() => 'interrupted');
    if (failure !== undefined) load.failures.set(failure, (load.failures.get(failure) ?? 0) + 1);
  }
}

/** @returns why the response is not complete; undefined if it is */
async function sendRequest(api: string, { customer: { apiKey }, completedIds }: Load): Promise<string | undefined> {
  const stream = Math.random() < 0.5;
  const latencyMs = Math.floor(Math.random() * MAX_LATENCY_MS);
  const content = `[[sandbox latency=${latencyMs} tokens=8 chunk_delay=${stream ? 3 : 0}]]`;
  const model = stream ? 'openai/gpt-5-mini' : 'countinghouse/flat';
  const body = { model, messages: [{ role: 'user', content }], max_tokens: 16, stream };
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const response = await fetch(`${api}/v1/chat/completions`, { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (response.status !== 200) return String(response.status);
  if (stream && (!text.endsWith('data: [DONE]\n\n') || text.includes('"error"'))) return 'interrupted';
  completedIds.push(response.headers.get('x-request-id') ?? '');
  return undefined;
}

/** Kills one gateway after the other, and starts each again, until `work` has ended. @returns the number of kills */
async function killGateways(cluster: ProofCluster, work: { readonly hasEnded: boolean }): Promise<number> {
  let kills = 0;
  for (; !work.hasEnded; kills++) {
    await sleep(500 + Math.random() * 1_500);
    const name = `gateway ${1 + (kills % GATEWAYS)}`;
    await cluster.processes.get(name)?.kill();
    cluster.processes.delete(name);
    await cluster.startRole('gateway', name);
  }
  return kills;
}

/** Debits more than the balance. Each command must be rejected with a sentence. */
async function rejectOverdrafts(cluster: ProofCluster): Promise<void> {
  for (let i = 0; i < OVERDRAFTS; i++) {
    const { code, output } = await adjust(cluster, { id: `overdraft-${i}`, verb: 'debit', usd: EXCESSIVE_USD });
    check(code === 1 && OVERDRAFT_MESSAGE.test(output), `an overdraft ended with ${code}: ${output}`);
  }
}

async function adjustUnderLoad(cluster: ProofCluster, load: Load): Promise<PicoUsd> {
  const adjustments = planAdjustments(ADJUSTMENTS);
  const work = { hasEnded: false };
  const workers = Promise.all(Array.from({ length: WORKERS }, () => runWorker(cluster, load, work)));
  const killing = killGateways(cluster, work);
  const [counts] = await Promise.all([runAdjustments(cluster, adjustments), rejectOverdrafts(cluster)]);
  work.hasEnded = true;
  const [kills] = await Promise.all([killing, workers]);
  print(
    `${ADJUSTMENTS} adjustments by ${counts.commands} commands, ${counts.killed} of them killed (${counts.killedAfterOutput} after their output), ${counts.repeated} repeated an earlier one; ${OVERDRAFTS} overdrafts rejected; ${kills} gateways killed`,
  );
  for (const failure of counts.failures) check(false, failure);
  check(counts.killed > 0 && counts.killedAfterOutput > 0 && kills > 0, 'nothing was killed');
  const changes = [OPENING_CREDIT, ...adjustments].map(calculateChange);
  await checkAdjustments(cluster, [OPENING_CREDIT.id, ...adjustments.map(({ id }) => id)], changes);
  return money.sum(changes);
}

// --- ledger ---------------------------------------------------------------------------------------------------------

/** Runs a report, and returns its output. */
async function report(cluster: ProofCluster, ...args: string[]): Promise<string> {
  const { code, output } = await cluster.runLedger(...args);
  check(code === 0, `${args.join(' ')} ended with ${code}: ${output}`);
  return output;
}

/** Checks that the stream of the account has one event for each adjustment, with its amount, and no other. */
async function checkAdjustments(
  cluster: ProofCluster,
  ids: readonly string[],
  changes: readonly PicoUsd[],
): Promise<void> {
  const history = await report(cluster, 'history', ACCOUNT);
  const booked = [...history.matchAll(/^\S+Z +(-?[\d.]+) {2}operator (\S+): /gm)].map(([, usd, id]) => `${id} ${usd}`);
  const expected = ids.map((id, i) => `${id} ${formatUsd(changes[i] as PicoUsd)}`);
  check(booked.toSorted().join() === expected.toSorted().join(), `booked: ${booked.join(', ')}`);
  print(`${booked.length} adjustments booked of ${expected.length} ids`);
}

/** Checks that all reports agree on what was funded and charged. @returns the balance */
async function checkLedger(cluster: ProofCluster, accountId: string, load: Load, funded: PicoUsd): Promise<PicoUsd> {
  const { customer, completedIds, sent, failures } = load;
  await waitUntil(async () => (await cluster.fetchBalance(customer)).held_usd === 0);
  const charges = await waitForCharges(cluster, customer, Number(formatUsd(funded)), { served: completedIds.length });
  check(charges.balanceUsd === charges.historyUsd, 'balance and history differ');
  const counts = await countCharges(cluster, customer);
  const mischarged = completedIds.filter((id) => counts.get(id) !== 1).length;
  check(completedIds.length > 0 && mischarged === 0, `${mischarged} complete responses were not charged once`);
  const failureText = [...failures].map(([failure, times]) => `, ${times} × ${failure}`).join('');
  print(
    `${sent} requests sent, ${completedIds.length} complete responses${failureText}, ${mischarged} of the complete ones not charged exactly once`,
  );
  check(
    [...failures.keys()].every((failure) => failure === 'interrupted'),
    `requests failed${failureText}`,
  );

  const balance = money.parseUsd((await cluster.fetchBalance(customer)).balance);
  const charged = money.subtract(funded, balance);
  const [fundedUsd, chargedUsd, balanceUsd] = [funded, money.negate(charged), balance].map(formatUsd);
  print(`${fundedUsd} USD funded, ${chargedUsd} USD charged, balance ${balanceUsd} USD`);
  const statements = [
    ['history', ACCOUNT, [`${fundedUsd} +in all`, `${chargedUsd} +charged for`, `${balanceUsd} +balance`]],
    ['replay', '', [`${accountId} +${balanceUsd} +0`, `funding:operator +${fundedUsd}`]],
    ['wallets', '', [`operator +[\\d.]+ +[\\d.]+ +${fundedUsd}`]],
    ['accounts', '', [`${ACCOUNT} +${balanceUsd} +0 +${formatUsd(charged)} +1`]],
  ] as const;
  for (const [command, operand, lines] of statements) {
    const output = await report(cluster, command, ...(operand ? [operand] : []));
    for (const line of lines) check(new RegExp(`^ *${line}`, 'm').test(output), `${command} lacks ${line}: ${output}`);
  }
  return balance;
}

/** Debits more than half of the balance several times at once: only one debit is booked. Then debits the rest. */
async function emptyAccount(cluster: ProofCluster, { customer }: Load, balance: PicoUsd): Promise<void> {
  const amount = money.toPicoUsd(balance / 2n + 1n);
  const debits = Array.from(
    { length: OVERDRAFTS },
    (_, i) => ({ id: `half-${i}`, verb: 'debit', usd: formatUsd(amount) }) as const,
  );
  const results = await Promise.all(debits.map((debit) => adjust(cluster, debit)));
  const rejected = results.filter(({ code, output }) => code === 1 && OVERDRAFT_MESSAGE.test(output)).length;
  const booked = results.filter(({ code }) => code === 0).length;
  print(
    `of ${OVERDRAFTS} concurrent debits of more than half of the balance, ${booked} was booked, ${rejected} rejected`,
  );
  check(booked === 1 && rejected === OVERDRAFTS - 1, `debits ended with ${results.map(({ output }) => output).join()}`);
  const rest = { id: 'rest', verb: 'debit', usd: formatUsd(money.subtract(balance, amount)) } as const;
  check((await adjust(cluster, rest)).code === 0, 'the rest of the balance was not debited');
  const after = await cluster.fetchBalance(customer);
  check(after.balance === 0 && after.held_usd === 0, `the balance ended at ${after.balance}`);
  const last: Load = { customer, completedIds: [], failures: new Map(), sent: 0 };
  check((await sendRequest(cluster.gateways[0] ?? '', last)) === '402', 'a request was served without a balance');
}

async function prove(cluster: ProofCluster): Promise<void> {
  await cluster.waitUntilReady();
  const created = await report(cluster, 'accounts', 'create', '--name', ACCOUNT);
  const [, accountId = '', creditId = ''] = /^id +(\S+)\ncredit_id +(\S+)$/m.exec(created) ?? [];
  const apiKey = (await report(cluster, 'keys', 'create', '--account', ACCOUNT, '--name', 'proof')).trim();
  const load: Load = { customer: { creditId, apiKey }, completedIds: [], failures: new Map(), sent: 0 };
  const { code, output } = await adjust(cluster, OPENING_CREDIT);
  check(code === 0, `the opening credit failed: ${output}`);
  const funded = await adjustUnderLoad(cluster, load);
  const balance = await checkLedger(cluster, accountId, load, funded);
  await emptyAccount(cluster, load, balance);
  print((await report(cluster, 'verify')).trim().split('\n').at(-1) ?? '');
}

const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-funding-'));
const cluster = await ProofCluster.start(dataDir, GATEWAYS);
try {
  await prove(cluster);
} finally {
  await cluster.stop();
  await rm(dataDir, { recursive: true });
}
for (const problem of problems) print(`PROBLEM: ${problem.trim()}`);
if (problems.length > 0) process.exitCode = 1;
