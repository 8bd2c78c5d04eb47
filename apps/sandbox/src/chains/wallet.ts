/** Wallets of third parties that pay to addresses on the simulated chains, and the miners of these chains. */
import { money } from '#kernel';
import { parseReportMode } from '../report.ts';
import { type Call, HttpError, parseObject, type Routes } from '../router.ts';
import type { Chain, Chains, Transaction } from './chain.ts';

const MAX_BLOCKS = 1_000;
const MAX_COIN_LENGTH = 10;

type Body = Readonly<Record<string, unknown>>;

export function chainRoutes(chains: Chains, now: () => number = Date.now): Routes {
  return {
    'POST /wallet/send': async (call) => call.sendJson(200, send(chains, await readBody(call), now)),
    'POST /chains/*': async (call) => {
      const [coin = '', what = ''] = call.parameter.split('/');
      const action = Object.hasOwn(ACTIONS, what) ? ACTIONS[what] : undefined;
      if (!action) throw badRequestError(`a chain action must be ${Object.keys(ACTIONS).join(' or ')}`);
      call.sendJson(200, action(chains.getChain(parseCoin(coin)), await readBody(call)));
    },
  };
}

const ACTIONS: Readonly<Record<string, (chain: Chain, body: Body) => object>> = {
  mine(chain, { blocks = 1, ...unknown }) {
    assertNoUnknownOptions(unknown);
    const valid = Number.isSafeInteger(blocks) && Number(blocks) > 0 && Number(blocks) <= MAX_BLOCKS;
    if (!valid) throw badRequestError(`"blocks" must be an integer from 1 to ${MAX_BLOCKS}`);
    chain.mine(Number(blocks));
    return { coin: chain.network.coin, height: chain.height };
  },
  undo(chain, { txid, ...unknown }) {
    assertNoUnknownOptions(unknown);
    return toTransactionJson(chain, chain.drop(getTransaction(chain, txid)));
  },
};

function send(chains: Chains, body: Body, now: () => number) {
  const { coin, address, amount, received_at, replaces, low_fee = false, unlock_height = 0, report, ...unknown } = body;
  assertNoUnknownOptions(unknown);
  const chain = chains.getChain(parseCoin(coin));
  if (typeof address !== 'string' || !chain.hasAddress(address))
    throw badRequestError('"address" must be an address that the sandbox has issued');
  if (typeof low_fee !== 'boolean') throw badRequestError('"low_fee" must be true or false');
  if (!Number.isSafeInteger(unlock_height)) throw badRequestError('"unlock_height" must be a block height');
  const units = parseUnits(amount, chain);
  const seenAt = received_at === undefined ? now() : parseTime(received_at);
  const options = { lowFee: low_fee, unlockHeight: Number(unlock_height), report: parseReportMode(report) };
  if (replaces !== undefined) {
    const replaced = getTransaction(chain, replaces);
    if (replaced.height !== undefined) throw badRequestError('the transaction to replace is in a block');
    chain.drop(replaced);
  }
  return toTransactionJson(chain, chain.send({ outputs: [{ address, units }], seenAt, ...options }));
}

function getTransaction(chain: Chain, txid: unknown): Transaction {
  const transaction = typeof txid === 'string' ? chain.find(txid) : undefined;
  if (!transaction || transaction.isDropped) throw badRequestError('transaction not found on the chain');
  return transaction;
}

function toTransactionJson(chain: Chain, transaction: Transaction) {
  const { id, outputs, isDropped } = transaction;
  return {
    txid: id,
    coin: chain.network.coin,
    confirmations: chain.countConfirmations(transaction),
    gone: isDropped,
    outputs: outputs.map(({ address, units }, vout) => ({
      vout,
      address,
      amount: money.formatScaled(units, chain.network.decimals),
    })),
  };
}

function parseCoin(value: unknown): string {
  const valid = typeof value === 'string' && /^[A-Z][A-Z0-9]+$/.test(value) && value.length <= MAX_COIN_LENGTH;
  if (!valid) throw badRequestError('a coin must be a capital letter, then 1 to 9 capitals or digits, such as BTC');
  return value;
}

/** Parses an amount in coins, given as a decimal string. */
function parseUnits(amount: unknown, { network }: Chain): bigint {
  const valid = typeof amount === 'string' && /^\d{1,12}(\.\d{1,18})?$/.test(amount);
  try {
    const units = valid ? money.parseScaled(amount, network.decimals) : 0n;
    if (units > 0n) return units;
  } catch {} // more decimals than the chain supports
  throw badRequestError(
    `"amount" must be a decimal string above 0, below 10¹² and with at most ${network.decimals} decimals`,
  );
}

/** Converts Unix seconds to milliseconds. */
function parseTime(value: unknown): number {
  if (!Number.isSafeInteger(value) || Number(value) <= 0)
    throw badRequestError('"received_at" must be Unix seconds: an integer above 0');
  return Number(value) * 1000;
}

async function readBody(call: Call): Promise<Body> {
  return parseObject((await call.readText()) || '{}') ?? fail('the body must be a JSON object');
}

function assertNoUnknownOptions(unknown: Body): void {
  for (const name in unknown) throw badRequestError(`unknown option "${name}"`);
}

function fail(error: string): never {
  throw badRequestError(error);
}

function badRequestError(error: string): HttpError {
  return new HttpError(400, { error });
}
