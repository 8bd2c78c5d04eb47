/** Address formats of coins. No address belongs to a main network, so a wallet with actual money cannot pay to it. */
import { randomBytes } from 'node:crypto';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { base58xmr, bech32 } from '@scure/base';

export interface Network {
  readonly coin: string;
  /** Number of decimals of the smallest on-chain unit. */
  readonly decimals: number;
  createAddress(): string;
}

const DECIMALS = 8;
/** Human-readable parts of segwit addresses on regtest: parameters of Bitcoin Core, Litecoin Core and Elements. */
const PREFIXES: Readonly<Record<string, string>> = { BTC: 'bcrt', LTC: 'rltc', LBTC: 'ert' };

const MONERO_DECIMALS = 12;
/** The first byte of a subaddress on Monero's stagenet. */
const STAGENET_SUBADDRESS = 36;
const MONERO_KEYS_BYTES = 64;
const MONERO_CHECKSUM_BYTES = 4;

/** Returns the network of a coin. Addresses of an unknown coin begin with its code in lower case and `rt`. */
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
