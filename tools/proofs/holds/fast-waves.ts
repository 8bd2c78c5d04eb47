/**
 * 64 concurrent responses of expensive models at 800 tokens per second, without an output limit, with money for 70 or
 * for 40 responses, streaming or not. The responses are paid from a balance. Those of equal length are also paid within
 * the limit of an API key. Then single requests with little money, which get as far as their money.
 */
import type { Customer } from '../../cluster.ts';
import type { HoldFinding } from './evaluate.ts';
import { createEqualLengths, mean, sampleLogNormal, sum } from './random.ts';
import type { HoldScene } from './scene.ts';

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
const MAX_TRUNCATED_SHARE = 0.12;
/** The seeds of varying lengths. Odd ones are streamed. */
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];
/** So many waves of varying lengths run at the same time. */
const WAVES_AT_ONCE = 4;
/** A lone request gets as far as this money, of which it uses at least this share. */
const SMALL_USD = 0.21;
const MIN_USED_SHARE = 0.95;

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

async function runWave(
  scene: HoldScene,
  { lengths, affordableCount, stream, capped = false, model = MODEL }: WaveParams,
) {
  const { customer } = await scene.createPayer(affordableCount * (mean(lengths) * USD_PER_TOKEN + PROMPT_USD), capped);
  const apis = scene.cluster.gateways;
  const ends = await Promise.all(
    lengths.map((tokens, i) => sendChat(apis[i % apis.length] as string, customer, tokens, { stream, model })),
  );
  const count = (outcome: string) => ends.filter((end) => end.outcome === outcome).length;
  const sumSpent = (outcome: string) => sum(ends.filter((end) => end.outcome === outcome).map(({ usd }) => usd));
  const { balance, held_usd } = await scene.fetchBalance(customer);
  const [completed, truncated, rejected] = [count('stop'), count('length'), count('402')];
  const [forTruncated, forAll] = [sumSpent('length'), sumSpent('length') + sumSpent('stop')];
  const truncatedShare = forTruncated / Math.max(forAll, Number.MIN_VALUE);
  const isConsistent = balance >= 0 && held_usd === 0 && completed + truncated + rejected === lengths.length;
  const line =
    `${stream ? 'streaming' : 'non-streaming'}, ${capped ? 'key limit' : 'balance'} for ${affordableCount}: ${completed} complete, ` +
    `${truncated} truncated (${(truncatedShare * 100).toFixed(1)} % of the money), ${rejected} rejected`;
  return { completed, truncated, forTruncated, forAll, inOrder: isConsistent, line };
}

export async function* proveFastWaves(scene: HoldScene): AsyncGenerator<HoldFinding> {
  const equal = createEqualLengths(AT_ONCE, 500);
  for (const capped of [false, true])
    for (const stream of [true, false]) {
      const ample = await runWave(scene, { lengths: equal, affordableCount: 70, stream, capped });
      yield { holds: ample.inOrder && ample.completed === AT_ONCE, line: `500 tokens each, ${ample.line}` };
      const short = await runWave(scene, { lengths: equal, affordableCount: 40, stream, capped });
      yield { holds: short.inOrder && short.completed >= 38, line: `500 tokens each, ${short.line}` };
    }
  await seedLengthStats(scene);
  yield* proveVaryingLengths(scene);
  yield* proveSingleRequests(scene);
}

async function* proveVaryingLengths(scene: HoldScene): AsyncGenerator<HoldFinding> {
  const runSeed = async (seed: number, affordableCount: number) => {
    const lengths = sampleLogNormal(AT_ONCE, seed);
    return runWave(scene, { lengths, affordableCount, stream: seed % 2 === 1, model: OTHER_MODEL });
  };
  const shares: number[] = [];
  for (let first = 0; first < SEEDS.length; first += WAVES_AT_ONCE) {
    const seeds = SEEDS.slice(first, first + WAVES_AT_ONCE);
    for (const ample of await Promise.all(seeds.map((seed) => runSeed(seed, 70))))
      yield { holds: ample.inOrder && ample.truncated <= 1, line: `50 to 8,000 tokens, ${ample.line}` };
    for (const short of await Promise.all(seeds.map((seed) => runSeed(seed, 40)))) {
      yield { holds: short.inOrder, line: `50 to 8,000 tokens, ${short.line}` };
      shares.push(short.forTruncated / short.forAll);
    }
  }
  const share = mean(shares);
  const line = `with money for 40, ${(share * 100).toFixed(1)} % of what was spent paid for truncated responses`;
  yield { holds: share <= MAX_TRUNCATED_SHARE, line };
}

/** Gives every gateway statistics of the response lengths of OTHER_MODEL, as in continuous operation. */
async function seedLengthStats({ cluster }: HoldScene): Promise<void> {
  const rich = await cluster.createCustomer(100);
  for (const api of cluster.gateways)
    await Promise.all(
      sampleLogNormal(40, 7).map((tokens) => sendChat(api, rich, tokens, { stream: true, model: OTHER_MODEL })),
    );
}

async function* proveSingleRequests(scene: HoldScene): AsyncGenerator<HoldFinding> {
  const [api = ''] = scene.cluster.gateways;
  const createCustomer = async (usd: number) => (await scene.createPayer(usd)).customer;
  const long = await sendChat(api, await createCustomer(1.05), 20_000, { stream: true });
  const line = `a response of 20,000 tokens with 1.05 USD ends with ${long.outcome}`;
  yield { holds: long.outcome === 'stop', line };
  const agents = await createCustomer(1);
  const agentResults = await Promise.all(
    createEqualLengths(8, 300).map((tokens) => sendChat(api, agents, tokens, { stream: true, max_tokens: 32_000 })),
  );
  const served = agentResults.filter(({ outcome }) => outcome === 'stop').length;
  yield { holds: served === 8, line: `agents with max_tokens 32,000 and 1 USD: ${served} of 8 served` };
  const calls = await createCustomer(1.05);
  const callResults = await Promise.all(createEqualLengths(8, 12).map((tokens) => sendChat(api, calls, tokens, {})));
  const done = callResults.filter(({ outcome }) => outcome === 'stop').length;
  yield { holds: done === 8, line: `non-streaming calls with 1.05 USD: ${done} of 8 served` };
  const small = await createCustomer(SMALL_USD);
  const truncated = await sendChat(api, small, 20_000, { stream: true });
  const { balance } = await scene.fetchBalance(small);
  const used = `uses ${((1 - balance / SMALL_USD) * 100).toFixed(1)} % of its money`;
  yield {
    holds: truncated.outcome === 'length' && balance <= SMALL_USD * (1 - MIN_USED_SHARE),
    line: `a lone response of 20,000 tokens with ${SMALL_USD} USD ends with ${truncated.outcome}, and ${used}`,
  };
}
