/**
 * Encodes and signs BOLT 11 invoices for regtest, and parses their payment hash. Source: lightning/bolts,
 * 11-payment-encoding.md.
 */
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { bech32 } from '@scure/base';

const REGTEST_PREFIX = 'lnbcrt';
/** Maximum bytes of a description: a field has at most 1023 groups of 5 bits. */
export const MAX_DESCRIPTION_BYTES = 639;

export interface InvoiceTerms {
  /** 0 leaves the amount to the payer. */
  readonly msat: bigint;
  /** Unix seconds. */
  readonly timestamp: number;
  readonly paymentHash: Uint8Array;
  readonly paymentSecret: Uint8Array;
  readonly description: string;
  readonly expirySeconds: number;
  readonly minFinalCltv: number;
}

/** The features of LND 0.18: variable onion and payment secret are required, multi-part payments are optional. */
const FEATURE_BITS = [8, 14, 17];

const TIMESTAMP_GROUPS = 7;
const SIGNATURE_GROUPS = 104;
const HASH_TYPE = 1;
const FEATURES_TYPE = 5;
const EXPIRY_TYPE = 6;
const DESCRIPTION_TYPE = 13;
const SECRET_TYPE = 16;
const CLTV_TYPE = 24;

/** Encodes and signs an invoice with the node's private key. */
export function encodeInvoice(terms: InvoiceTerms, privateKey: Uint8Array): string {
  const prefix = REGTEST_PREFIX + formatAmount(terms.msat);
  const groups = [
    ...encodeInteger(BigInt(terms.timestamp), TIMESTAMP_GROUPS),
    ...encodeField(HASH_TYPE, bech32.toWords(terms.paymentHash)),
    ...encodeField(SECRET_TYPE, bech32.toWords(terms.paymentSecret)),
    ...encodeField(DESCRIPTION_TYPE, bech32.toWords(Buffer.from(terms.description))),
    ...encodeField(EXPIRY_TYPE, encodeInteger(BigInt(terms.expirySeconds))),
    ...encodeField(CLTV_TYPE, encodeInteger(BigInt(terms.minFinalCltv))),
    ...encodeField(FEATURES_TYPE, encodeInteger(FEATURE_BITS.reduce((bits, bit) => bits | (1n << BigInt(bit)), 0n))),
  ];
  return bech32.encode(prefix, [...groups, ...createSignatureGroups(prefix, groups, privateKey)], false);
}

/**
 * Returns the bytes that are hashed with SHA-256 and signed: the prefix as text, and the data padded with zero bits.
 */
export function getSignedBytes(prefix: string, groups: readonly number[]): Uint8Array {
  const data = Buffer.alloc(Math.ceil((groups.length * 5) / 8));
  groups.forEach((group, index) => {
    const bit = index * 5;
    const shifted = group << (11 - (bit % 8)); // within the two bytes that start at bit / 8
    const at = bit >> 3;
    data[at] = (data[at] as number) | (shifted >> 8);
    if (at + 1 < data.length) data[at + 1] = (data[at + 1] as number) | (shifted & 0xff);
  });
  return Buffer.concat([Buffer.from(prefix), data]);
}

/** Returns r, s and the recovery id. The node's public key can be computed from all three and the message. */
function createSignatureGroups(prefix: string, groups: readonly number[], privateKey: Uint8Array): number[] {
  const [recoveryId = 0, ...rs] = secp256k1.sign(getSignedBytes(prefix, groups), privateKey, { format: 'recovered' });
  return bech32.toWords(Uint8Array.from([...rs, recoveryId]));
}

/** Millisatoshis by the multiplier letter of an amount, the largest multiplier first. */
const MULTIPLIERS: readonly (readonly [letter: string, msat: bigint])[] = [
  ['', 100_000_000_000n],
  ['m', 100_000_000n],
  ['u', 100_000n],
  ['n', 100n],
];

function formatAmount(msat: bigint): string {
  if (msat === 0n) return '';
  const multiplier = MULTIPLIERS.find(([, unit]) => msat % unit === 0n);
  return multiplier ? `${msat / multiplier[1]}${multiplier[0]}` : `${msat * 10n}p`;
}

function encodeField(type: number, groups: readonly number[]): number[] {
  return [type, groups.length >> 5, groups.length & 31, ...groups];
}

/** Encodes a number in groups of 5 bits, most significant first: as few as possible, but at least `length`. */
function encodeInteger(value: bigint, length?: number): number[] {
  const groups: number[] = [];
  for (let rest = value; rest > 0n; rest >>= 5n) groups.unshift(Number(rest & 31n));
  while (groups.length < (length ?? 0)) groups.unshift(0);
  return groups;
}

/**
 * Returns the payment hash of an invoice. Does not verify the signature.
 * @returns lower-case hexadecimal; undefined if the text is not a regtest invoice, or has no valid payment hash
 */
export function parsePaymentHash(invoice: string): string | undefined {
  const decoded = bech32.decodeUnsafe(invoice, false);
  if (!decoded || !/^lnbcrt(\d+[munp]?)?$/.test(decoded.prefix)) return undefined;
  const { words } = decoded;
  let at = TIMESTAMP_GROUPS;
  while (at < words.length - SIGNATURE_GROUPS) {
    const [type, high = 0, low = 0] = words.slice(at, at + 3);
    const end = at + 3 + high * 32 + low;
    if (type === HASH_TYPE) return toHex(words.slice(at + 3, end));
    at = end;
  }
  return undefined;
}

function toHex(groups: number[]): string | undefined {
  const bytes = bech32.fromWordsUnsafe(groups);
  return bytes ? Buffer.from(bytes).toString('hex') : undefined;
}
