/** Wallets outside, which pay to addresses on the simulated chains, and the miners of these. */
import { money } from '#kernel';
import { reportIn } from '../report.ts';
import { type Call, parseObject, Refusal, type Routes } from '../router.ts';
import type { Chain, Chains, Transaction } from './chain.ts';

const MAX_BLOCKS = 1_000;
const MAX_COIN_LENGTH = 10;

type Body = Readonly<Record<string, unknown>>;

export function chainRoutes(chains: Chains, now: () => number = Date.now): Routes {
  return {
    'POST /wallet/send': async (call) => call.json(200, send(chains, await bodyOf(call), now)),
    'POST /chains/*': async (call) => {
      const [coin = '', what = ''] = call.parameter.split('/');
      const act = Object.hasOwn(ACTS, what) ? ACTS[what] : undefined;
      if (!act) throw failure(`a chain can be told to ${Object.keys(ACTS).join(' or ')}`);
      call.json(200, act(chains.of(coinIn(coin)), await bodyOf(call)));
    },
  };
}

const ACTS: Readonly<Record<string, (chain: Chain, body: Body) => object>> = {
  mine(chain, { blocks = 1, ...unknown }) {
    assertNone(unknown);
    const valid = Number.isSafeInteger(blocks) && Number(blocks) > 0 && Number(blocks) <= MAX_BLOCKS;
    if (!valid) throw failure(`"blocks" must be a whole number from 1 to ${MAX_BLOCKS}`);
    chain.mine(Number(blocks));
    return { coin: chain.network.coin, height: chain.height };
  },
  undo(chain, { txid, ...unknown }) {
    assertNone(unknown);
    return printed(chain, chain.drop(there(chain, txid)));
  },
};

function send(chains: Chains, body: Body, now: () => number) {
  const { coin, address, amount, received_at, replaces, low_fee = false, unlock_height = 0, report, ...unknown } = body;
  assertNone(unknown);
  const chain = chains.of(coinIn(coin));
  if (typeof address !== 'string' || !chain.has(address))
    throw failure('"address" must be one that was given out here');
  if (typeof low_fee !== 'boolean') throw failure('"low_fee" must be true or false');
  if (!Number.isSafeInteger(unlock_height)) throw failure('"unlock_height" must be a block');
  const units = unitsIn(amount, chain);
  const seenAt = received_at === undefined ? now() : timeIn(received_at);
  const how = { lowFee: low_fee, unlockHeight: Number(unlock_height), report: reportIn(report) };
  if (replaces !== undefined) {
    const replaced = there(chain, replaces);
    if (replaced.height !== undefined) throw failure('that transaction is in a block');
    chain.drop(replaced);
  }
  return printed(chain, chain.send({ outputs: [{ address, units }], seenAt, ...how }));
}

function there(chain: Chain, txid: unknown): Transaction {
  const found = typeof txid === 'string' ? chain.find(txid) : undefined;
  if (!found || found.gone) throw failure('there is no such transaction on the chain');
  return found;
}

function printed(chain: Chain, transaction: Transaction) {
  const { id, outputs, gone } = transaction;
  return {
    txid: id,
    coin: chain.network.coin,
    confirmations: chain.confirmations(transaction),
    gone,
    outputs: outputs.map(({ address, units }, vout) => ({
      vout,
      address,
      amount: money.formatScaled(units, chain.network.decimals),
    })),
  };
}

function coinIn(value: unknown): string {
  const valid = typeof value === 'string' && /^[A-Z][A-Z0-9]+$/.test(value) && value.length <= MAX_COIN_LENGTH;
  if (!valid) throw failure('a coin is named by its code, such as BTC');
  return value;
}

/** Whole coins as a decimal string. */
function unitsIn(amount: unknown, { network }: Chain): bigint {
  const valid = typeof amount === 'string' && /^\d{1,12}(\.\d{1,18})?$/.test(amount);
  try {
    const units = valid ? money.parseScaled(amount, network.decimals) : 0n;
    if (units > 0n) return units;
  } catch {} // finer than the chain can pay
  throw failure(`"amount" must be a decimal string above 0 with at most ${network.decimals} decimals`);
}

/** Unix seconds, as milliseconds. */
function timeIn(value: unknown): number {
  if (!Number.isSafeInteger(value) || Number(value) <= 0) throw failure('"received_at" must be in Unix seconds');
  return Number(value) * 1000;
}

async function bodyOf(call: Call): Promise<Body> {
  return parseObject((await call.text()) || '{}') ?? fail('the body must be a JSON object');
}

function assertNone(unknown: Body): void {
  for (const name in unknown) throw failure(`there is no option "${name}"`);
}

function fail(error: string): never {
  throw failure(error);
}

function failure(error: string): Refusal {
  return new Refusal(400, { error });
}
