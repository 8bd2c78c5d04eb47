/**
 * `npm run prove:holds`: 64 concurrent responses of expensive models, without an output limit, with money for 70 or
 * for 40 responses, streaming or not, with one gateway and with three. The responses are paid from a balance. Those of
 * equal length are also paid within the limit of an API key: all 64 complete with money for 70, and at least 38 with
 * money for 40. With varying lengths and money for 40, at most 10 % of what is spent pays for truncated responses.
 * At the end nothing is held and no balance is negative.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Customer, ProofCluster } from '../cluster.ts';

const MODEL = 'anthropic/claude-opus-4.7';
/** Has the same prices as MODEL, but its own statistics of response lengths. */
const OTHER_MODEL = 'anthropic/claude-opus-4.6';
/** Price of an output token, including the margin. */
const USD_PER_TOKEN = 25e-6 * 1.055;
const PROMPT_USD = 150e-6;
const AT_ONCE = 64;
/** 16 tokens every 20 ms: 800 tokens per second. */
const CHUNK_TOKENS = 16;
const CHUNK_DELAY_MS = 20;
/** The median of the response lengths, in tokens. Varying lengths are log-normal, between the bounds below. */
const MEDIAN = 400;
const MIN_LENGTH = 50;
const MAX_LENGTH = 8_000;
const MAX_TRUNCATED_SHARE = 0.1;

interface ChatResult {
  /** The finish reason, such as `stop` or `length`; `nothing` without one; the status of an error response. */
  readonly outcome: string;
  readonly usd: number;
}

interface WaveParams {
  readonly lengths: readonly number[];
  readonly affordableCount: number;
  readonly stream: boolean;
  readonly capped?: boolean;
  readonly model?: string;
}

let failed = 0;

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function check(holds: boolean, line: string): void {
  print(`${holds ? 'passes' : 'FAILS '} ${line}`);
  if (!holds) failed++;
}

/** Returns the same lengths for the same seed. */
function sampleLogNormal(count: number, seed: number): readonly number[] {
  let state = seed;
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state + 1) / 4_294_967_297;
  };
  return Array.from({ length: count }, () => {
    const normal = Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
    return Math.round(Math.min(Math.max(MEDIAN * Math.exp(normal), MIN_LENGTH), MAX_LENGTH));
  });
}

async function sendChat(
  api: string,
  customer: Customer,
  tokens: number,
  extraFields: object = {},
): Promise<ChatResult> {
  const chunks = Math.max(1, Math.floor(tokens / CHUNK_TOKENS));
  const content = `[[sandbox tokens=${tokens} chunks=${chunks} chunk_delay=${CHUNK_DELAY_MS}]]`;
  const response = await fetch(`${api}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${customer.apiKey}` },
    body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content }], ...extraFields }),
  });
  const text = await response.text();
  if (response.status !== 200) return { outcome: String(response.status), usd: 0 };
  const finish = [...text.matchAll(/"finish_reason":\s*"(\w+)"/g)].at(-1)?.[1] ?? 'nothing';
  return { outcome: finish, usd: Number(/"cost":([\d.]+)/.exec(text)?.[1] ?? 0) };
}

/** Creates an account with `usd` USD. If `capped`, the account has more money, but its key may spend only `usd` USD. */
async function createPayer(cluster: ProofCluster, usd: number, capped: boolean): Promise<Customer> {
  if (!capped) return cluster.createCustomer(Number((usd / 1.05).toFixed(9)));
  const customer = await cluster.createCustomer(usd * 10);
  const { apiKey } = await cluster.createKey(customer, { name: 'capped', usage_limit_usd: Number(usd.toFixed(6)) });
  return { ...customer, apiKey };
}

async function runWave(
  cluster: ProofCluster,
  { lengths, affordableCount, stream, capped = false, model = MODEL }: WaveParams,
) {
  const mean = lengths.reduce((sum, tokens) => sum + tokens, 0) / lengths.length;
  const customer = await createPayer(cluster, affordableCount * (mean * USD_PER_TOKEN + PROMPT_USD), capped);
  const apis = cluster.gateways;
  const ends = await Promise.all(
    lengths.map((tokens, i) => sendChat(apis[i % apis.length] as string, customer, tokens, { stream, model })),
  );
  const count = (outcome: string) => ends.filter((end) => end.outcome === outcome).length;
  const sumSpent = (outcome: string) =>
    ends.filter((end) => end.outcome === outcome).reduce((sum, { usd }) => sum + usd, 0);
  const { balance, held_usd } = await cluster.fetchBalance(customer);
  const [completed, truncated, rejected] = [count('stop'), count('length'), count('402')];
  const [forTruncated, forAll] = [sumSpent('length'), sumSpent('length') + sumSpent('stop')];
  const truncatedShare = forTruncated / Math.max(forAll, Number.MIN_VALUE);
  const isConsistent = balance >= 0 && held_usd === 0 && completed + truncated + rejected === lengths.length;
  const line =
    `${stream ? 'streaming' : 'non-streaming'}, ${capped ? 'key limit' : 'balance'} for ${affordableCount}: ${completed} complete, ` +
    `${truncated} truncated (${(truncatedShare * 100).toFixed(1)} % of the money), ${rejected} rejected`;
  return { completed, truncated, forTruncated, forAll, inOrder: isConsistent, line };
}

async function prove(gateways: number): Promise<void> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-holds-'));
  const cluster = await ProofCluster.start(dataDir, gateways);
  print(`${gateways} gateway(s), ${AT_ONCE} at once`);
  try {
    const equal = createEqualLengths(AT_ONCE, 500);
    for (const capped of [false, true])
      for (const stream of [true, false]) {
        const ample = await runWave(cluster, { lengths: equal, affordableCount: 70, stream, capped });
        check(ample.inOrder && ample.completed === AT_ONCE, `500 tokens each, ${ample.line}`);
        const short = await runWave(cluster, { lengths: equal, affordableCount: 40, stream, capped });
        check(short.inOrder && short.completed >= 38, `500 tokens each, ${short.line}`);
      }
    await seedLengthStats(cluster);
    let [forTruncated, forAll] = [0, 0];
    for (const stream of [true, false])
      for (const seed of [1, 2]) {
        const lengths = sampleLogNormal(AT_ONCE, seed);
        const ample = await runWave(cluster, { lengths, affordableCount: 70, stream, model: OTHER_MODEL });
        check(ample.inOrder && ample.truncated <= 1, `50 to 8,000 tokens, ${ample.line}`);
        const short = await runWave(cluster, { lengths, affordableCount: 40, stream, model: OTHER_MODEL });
        check(short.inOrder, `50 to 8,000 tokens, ${short.line}`);
        forTruncated += short.forTruncated;
        forAll += short.forAll;
      }
    const part = forTruncated / forAll;
    check(
      part <= MAX_TRUNCATED_SHARE,
      `with money for 40, ${(part * 100).toFixed(1)} % of what was spent paid for truncated responses`,
    );
    await checkSingleRequests(cluster);
    const verified = await cluster.runLedger('verify');
    check(verified.code === 0, verified.output.trim().split('\n').at(-1) ?? '');
  } finally {
    await cluster.stop();
    await rm(dataDir, { recursive: true });
  }
}

/** Gives every gateway statistics of the response lengths of OTHER_MODEL, as in continuous operation. */
async function seedLengthStats(cluster: ProofCluster): Promise<void> {
  const rich = await cluster.createCustomer(100);
  for (const api of cluster.gateways)
    await Promise.all(
      sampleLogNormal(40, 7).map((tokens) => sendChat(api, rich, tokens, { stream: true, model: OTHER_MODEL })),
    );
}

async function checkSingleRequests(cluster: ProofCluster): Promise<void> {
  const [api = ''] = cluster.gateways;
  const long = await sendChat(api, await createPayer(cluster, 1.05, false), 20_000, { stream: true });
  check(long.outcome === 'stop', `a response of 20,000 tokens with 1.05 USD ends with ${long.outcome}`);
  const agents = await createPayer(cluster, 1, false);
  const agentResults = await Promise.all(
    createEqualLengths(8, 300).map((tokens) => sendChat(api, agents, tokens, { stream: true, max_tokens: 32_000 })),
  );
  const served = agentResults.filter(({ outcome }) => outcome === 'stop').length;
  check(served === 8, `agents with max_tokens 32,000 and 1 USD: ${served} of 8 served`);
  const calls = await createPayer(cluster, 1.05, false);
  const callResults = await Promise.all(createEqualLengths(8, 12).map((tokens) => sendChat(api, calls, tokens, {})));
  const done = callResults.filter(({ outcome }) => outcome === 'stop').length;
  check(done === 8, `non-streaming calls with 1.05 USD: ${done} of 8 served`);
}

function createEqualLengths(count: number, tokens: number): readonly number[] {
  return Array<number>(count).fill(tokens);
}

for (const gateways of [1, 3]) await prove(gateways);
if (failed > 0) process.exitCode = 1;
