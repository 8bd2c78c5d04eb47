/**
 * Connection strings of Nostr Wallet Connect: `nostr+walletconnect://<public key>?relay=<address>&secret=<key>`
 * (NIP-47).
 */
import { createECDH, ECDH } from 'node:crypto';
import { InvalidRequestError } from '#application';
import { isAllowedRelay } from './relay-connect.ts';

export const MAX_URL_LENGTH = 2_048;
const MAX_RELAYS = 4;
const MAX_RELAY_LENGTH = 256;
/** The spellings that wallets use, also without slashes. */
const SCHEME = /^nostr\+?walletconnect:(\/\/)?/i;
const CURVE = 'secp256k1';
const HEX_KEY = /^[0-9a-f]{64}$/;
/** Lower ports belong to well-known services, which must not be contacted at the request of a third party. */
const FIRST_FREE_PORT = 1_024;

export interface ConnectionString {
  readonly pubkey: string;
  readonly relays: readonly string[];
  readonly secret: string;
}

/**
 * @param allowedRelays relays that may have private addresses and may be used without TLS
 * @throws InvalidRequestError for an invalid string; its message quotes no part of the string, which contains a secret
 */
export function parseConnectionString(text: string, allowedRelays: readonly string[]): ConnectionString {
  if (text.length > MAX_URL_LENGTH) throw invalidNwcUrl(`must have at most ${MAX_URL_LENGTH} characters`);
  const trimmed = text.trim();
  if (!SCHEME.test(trimmed)) throw invalidNwcUrl('must be a connection string: nostr+walletconnect://…');
  const url = parseUrl(trimmed.replace(SCHEME, 'nwc://'));
  const pubkey = url.hostname.toLowerCase();
  const secret = (url.searchParams.get('secret') ?? '').toLowerCase();
  if (!HEX_KEY.test(pubkey) || !isPublicKey(pubkey)) throw invalidNwcUrl('must name a wallet by its public key');
  if (!HEX_KEY.test(secret) || !isPrivateKey(secret))
    throw invalidNwcUrl('must have a valid secret of 64 hexadecimal digits');
  const relays = [...new Set(url.searchParams.getAll('relay').map((relay) => relay.trim()))];
  if (relays.length === 0 || relays.length > MAX_RELAYS)
    throw invalidNwcUrl(`must name from 1 to ${MAX_RELAYS} relays`);
  return { pubkey, relays: relays.map((relay) => parseRelay(relay, allowedRelays)), secret };
}

function parseRelay(text: string, allowedRelays: readonly string[]): string {
  if (text.length > MAX_RELAY_LENGTH || !URL.canParse(text)) throw invalidNwcUrl('must name relays by their addresses');
  if (['ws:', 'wss:'].includes(new URL(text).protocol) && isAllowedRelay(text, allowedRelays)) return text;
  const { protocol, username, password, port, hash, href } = new URL(text);
  if (protocol !== 'wss:') throw invalidNwcUrl('must name relays by addresses that start with wss://');
  if (username !== '' || password !== '' || hash !== '') throw invalidNwcUrl('must name relays by plain addresses');
  if (port !== '' && Number(port) < FIRST_FREE_PORT)
    throw invalidNwcUrl(`must name relays at port 443 or at a port from ${FIRST_FREE_PORT} on`);
  return href;
}

function parseUrl(text: string): URL {
  if (!URL.canParse(text)) throw invalidNwcUrl('must be a connection string: nostr+walletconnect://…');
  return new URL(text);
}

/** Whether the text is the x coordinate of a point on the curve. */
function isPublicKey(pubkey: string): boolean {
  return succeeds(() => ECDH.convertKey(`02${pubkey}`, CURVE, 'hex'));
}

function isPrivateKey(secret: string): boolean {
  return succeeds(() => createECDH(CURVE).setPrivateKey(secret, 'hex'));
}

function succeeds(action: () => unknown): boolean {
  try {
    action();
    return true;
  } catch {
    return false; // the caller names the invalid part
  }
}

function invalidNwcUrl(what: string): InvalidRequestError {
  return new InvalidRequestError(400, `nwc_url ${what}`, 'nwc_url');
}
