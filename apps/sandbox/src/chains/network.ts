/**
 * The networks of coins, as far as an address shows them. Every address is one of a network for tests, so no real wallet
 * pays to it.
 */
import { randomBytes } from 'node:crypto';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { base58xmr, bech32 } from '@scure/base';

export interface Network {
  readonly coin: string;
  /** How many decimals of a coin its smallest unit on the chain stands for. */
  readonly decimals: number;
  createAddress(): string;
}

const DECIMALS = 8;
/** Human-readable parts of regtest's segwit addresses: BIP 173, and the parameters of Litecoin and Elements. */
const PREFIXES: Readonly<Record<string, string>> = { BTC: 'bcrt', LTC: 'rltc', LBTC: 'ert' };

const MONERO_DECIMALS = 12;
/** The first byte of a subaddress on Monero's stagenet. */
const STAGENET_SUBADDRESS = 36;
const MONERO_KEYS_BYTES = 64;
const MONERO_CHECKSUM_BYTES = 4;

/** Coins that are not known here have addresses that begin with their code and `rt`. */
export function getNetwork(coin: string): Network {
  if (coin === 'XMR') return { coin, decimals: MONERO_DECIMALS, createAddress: createMoneroSubaddress };
  const prefix = PREFIXES[coin] ?? `${coin.toLowerCase()}rt`;
  return {
    coin,
    decimals: DECIMALS,
    createAddress: () => bech32.encode(prefix, [0, ...bech32.toWords(randomBytes(20))]),
  };
}

function createMoneroSubaddress(): string {
  const payload = Buffer.concat([Buffer.from([STAGENET_SUBADDRESS]), randomBytes(MONERO_KEYS_BYTES)]);
  return base58xmr.encode(Buffer.concat([payload, keccak_256(payload).subarray(0, MONERO_CHECKSUM_BYTES)]));
}
