/**
 * `npm run prove:holds`: 64 answers at once of the dearest model, whose callers name no limit, with money for 70 of them or
 * for 40: paid by a balance or within a key's cap, streamed or in one piece, with one gateway and with three. What the money
 * affords is served, nothing unpaid, and nothing falls below zero.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Customer, ProofCluster } from '../cluster.ts';

const MODEL = 'anthropic/claude-opus-4.7';
/** As dear; what is known of the lengths of its answers is not from the first part of the proof. */
const OTHER_MODEL = 'anthropic/claude-opus-4.6';
/** Per token of output, the margin included. */
const USD_PER_TOKEN = 25e-6 * 1.055;
const QUESTION_USD = 150e-6;
const AT_ONCE = 64;
/** Tokens in a chunk, and milliseconds between two of them: 800 tokens a second. */
const CHUNK_TOKENS = 16;
const CHUNK_DELAY_MS = 20;
/** Lengths of answers: log-normal, between two bounds. */
const MEDIAN = 400;
const SHORTEST = 50;
const LONGEST = 8_000;
const MOST_CUT_PART = 0.1;

interface Ended {
  /** `stop`, `length`, or the status of a refusal. */
  readonly how: string;
  readonly usd: number;
}

interface Wave {
  readonly lengths: readonly number[];
  readonly afforded: number;
  readonly stream: boolean;
  readonly capped?: boolean;
  readonly model?: string;
}

let failed = 0;

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function check(holds: boolean, line: string): void {
  print(`${holds ? 'holds ' : 'FAILS '} ${line}`);
  if (!holds) failed++;
}

/** The same lengths each time. */
function logNormal(count: number, seed: number): readonly number[] {
  let state = seed;
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state + 1) / 4_294_967_297;
  };
  return Array.from({ length: count }, () => {
    const normal = Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
    return Math.round(Math.min(Math.max(MEDIAN * Math.exp(normal), SHORTEST), LONGEST));
  });
}

async function ask(api: string, customer: Customer, tokens: number, more: object = {}): Promise<Ended> {
  const chunks = Math.max(1, Math.floor(tokens / CHUNK_TOKENS));
  const content = `[[sandbox tokens=${tokens} chunks=${chunks} chunk_delay=${CHUNK_DELAY_MS}]]`;
  const response = await fetch(`${api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${customer.apiKey}` },
    body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content }], ...more }),
  });
  const text = await response.text();
  if (response.status !== 200) return { how: String(response.status), usd: 0 };
  const finish = [...text.matchAll(/"finish_reason":\s*"(\w+)"/g)].at(-1)?.[1] ?? 'nothing';
  return { how: finish, usd: Number(/"cost":([\d.]+)/.exec(text)?.[1] ?? 0) };
}

/** Opens an account with that much money, or with plenty and a key that may spend that much. */
async function payer(cluster: ProofCluster, usd: number, capped: boolean): Promise<Customer> {
  if (!capped) return cluster.customer(Number((usd / 1.05).toFixed(9)));
  const customer = await cluster.customer(usd * 10);
  const { apiKey } = await cluster.newKey(customer, { name: 'capped', usage_limit_usd: Number(usd.toFixed(6)) });
  return { ...customer, apiKey };
}

async function wave(cluster: ProofCluster, { lengths, afforded, stream, capped = false, model = MODEL }: Wave) {
  const mean = lengths.reduce((sum, tokens) => sum + tokens, 0) / lengths.length;
  const customer = await payer(cluster, afforded * (mean * USD_PER_TOKEN + QUESTION_USD), capped);
  const apis = cluster.gateways;
  const ends = await Promise.all(
    lengths.map((tokens, i) => ask(apis[i % apis.length] as string, customer, tokens, { stream, model })),
  );
  const count = (how: string) => ends.filter((end) => end.how === how).length;
  const spent = (how: string) => ends.filter((end) => end.how === how).reduce((sum, { usd }) => sum + usd, 0);
  const { balance, held_usd } = await cluster.balance(customer);
  const [whole, cut, refused] = [count('stop'), count('length'), count('402')];
  const [forCut, forAll] = [spent('length'), spent('length') + spent('stop')];
  const cutPart = forCut / Math.max(forAll, Number.MIN_VALUE);
  const inOrder = balance >= 0 && held_usd === 0 && whole + cut + refused === lengths.length;
  const line =
    `${stream ? 'streams' : 'in one piece'}, ${capped ? 'a cap' : 'a balance'} for ${afforded}: ${whole} whole, ` +
    `${cut} cut (${(cutPart * 100).toFixed(1)} % of the money), ${refused} refused`;
  return { whole, cut, forCut, forAll, inOrder, line };
}

async function prove(gateways: number): Promise<void> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-holds-'));
  const cluster = await ProofCluster.start(dataDir, gateways);
  print(`${gateways} gateway(s), ${AT_ONCE} at once`);
  try {
    const equal = equalLengths(AT_ONCE, 500);
    for (const capped of [false, true])
      for (const stream of [true, false]) {
        const enough = await wave(cluster, { lengths: equal, afforded: 70, stream, capped });
        check(enough.inOrder && enough.whole === AT_ONCE, `500 tokens each, ${enough.line}`);
        const short = await wave(cluster, { lengths: equal, afforded: 40, stream, capped });
        check(short.inOrder && short.whole >= 38, `500 tokens each, ${short.line}`);
      }
    await seen(cluster);
    let [forCut, forAll] = [0, 0];
    for (const stream of [true, false])
      for (const seed of [1, 2]) {
        const lengths = logNormal(AT_ONCE, seed);
        const enough = await wave(cluster, { lengths, afforded: 70, stream, model: OTHER_MODEL });
        check(enough.inOrder && enough.cut <= 1, `50 to 8,000 tokens, ${enough.line}`);
        const short = await wave(cluster, { lengths, afforded: 40, stream, model: OTHER_MODEL });
        check(short.inOrder, `50 to 8,000 tokens, ${short.line}`);
        forCut += short.forCut;
        forAll += short.forAll;
      }
    const part = forCut / forAll;
    check(part <= MOST_CUT_PART, `with money for 40, ${(part * 100).toFixed(1)} % of it went to answers that were cut`);
    await singles(cluster);
    const verified = await cluster.ledger('verify');
    check(verified.code === 0, verified.output.trim().split('\n').at(-1) ?? '');
  } finally {
    await cluster.stop();
    await rm(dataDir, { recursive: true });
  }
}

/** Every gateway has seen answers of the model, as one that has run for a while. */
async function seen(cluster: ProofCluster): Promise<void> {
  const rich = await cluster.customer(100);
  for (const api of cluster.gateways)
    await Promise.all(logNormal(40, 7).map((tokens) => ask(api, rich, tokens, { stream: true, model: OTHER_MODEL })));
}

async function singles(cluster: ProofCluster): Promise<void> {
  const [api = ''] = cluster.gateways;
  const long = await ask(api, await payer(cluster, 1.05, false), 20_000, { stream: true });
  check(long.how === 'stop', `an answer of 20,000 tokens on 1.05 USD ends with ${long.how}`);
  const agents = await payer(cluster, 1, false);
  const answers = await Promise.all(
    equalLengths(8, 300).map((tokens) => ask(api, agents, tokens, { stream: true, max_tokens: 32_000 })),
  );
  const served = answers.filter(({ how }) => how === 'stop').length;
  check(served === 8, `agents that name 32,000 tokens on 1 USD: ${served} of 8 served`);
  const calls = await payer(cluster, 1.05, false);
  const whole = await Promise.all(equalLengths(8, 12).map((tokens) => ask(api, calls, tokens, {})));
  const done = whole.filter(({ how }) => how === 'stop').length;
  check(done === 8, `calls in one piece on 1.05 USD: ${done} of 8 served`);
}

function equalLengths(count: number, tokens: number): readonly number[] {
  return Array<number>(count).fill(tokens);
}

for (const gateways of [1, 3]) await prove(gateways);
if (failed > 0) process.exitCode = 1;
