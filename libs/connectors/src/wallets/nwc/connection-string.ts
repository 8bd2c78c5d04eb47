/** Connection strings of Nostr Wallet Connect: `nostr+walletconnect://<public key>?relay=<address>&secret=<key>` (NIP-47). */
import { createECDH, ECDH } from 'node:crypto';
import { InvalidRequestError } from '#application';
import { isAllowedRelay } from './relay-connect.ts';

export const MAX_URL_LENGTH = 2_048;
const MAX_RELAYS = 4;
const MAX_RELAY_LENGTH = 256;
/** As wallets write it, also without slashes. */
const SCHEME = /^nostr\+?walletconnect:(\/\/)?/i;
const CURVE = 'secp256k1';
const KEY = /^[0-9a-f]{64}$/;
/** Below it are the ports of services that should not be talked to on a stranger's word. */
const FIRST_FREE_PORT = 1_024;

export interface ConnectionString {
  readonly pubkey: string;
  readonly relays: readonly string[];
  readonly secret: string;
}

/**
 * @param admitted relays that may be anywhere, also without TLS
 * @throws InvalidRequestError which says what is wrong, and repeats nothing of it: it has a secret
 */
export function parseConnectionString(text: string, admitted: readonly string[]): ConnectionString {
  if (text.length > MAX_URL_LENGTH) throw wrong(`must have at most ${MAX_URL_LENGTH} characters`);
  const trimmed = text.trim();
  if (!SCHEME.test(trimmed)) throw wrong('must be a connection string: nostr+walletconnect://…');
  const url = parsed(trimmed.replace(SCHEME, 'nwc://'));
  const pubkey = url.hostname.toLowerCase();
  const secret = (url.searchParams.get('secret') ?? '').toLowerCase();
  if (!KEY.test(pubkey) || !isPoint(pubkey)) throw wrong('must name a wallet by its public key');
  if (!KEY.test(secret) || !isSecret(secret)) throw wrong('must have a secret of 64 hexadecimal digits');
  const relays = [...new Set(url.searchParams.getAll('relay').map((each) => each.trim()))];
  if (relays.length === 0 || relays.length > MAX_RELAYS) throw wrong(`must name from 1 to ${MAX_RELAYS} relays`);
  return { pubkey, relays: relays.map((each) => relayIn(each, admitted)), secret };
}

function relayIn(text: string, admitted: readonly string[]): string {
  if (text.length > MAX_RELAY_LENGTH || !URL.canParse(text)) throw wrong('must name relays by their addresses');
  if (['ws:', 'wss:'].includes(new URL(text).protocol) && isAllowedRelay(text, admitted)) return text;
  const { protocol, username, password, port, hash, href } = new URL(text);
  if (protocol !== 'wss:') throw wrong('must name relays by addresses that start with wss://');
  if (username !== '' || password !== '' || hash !== '') throw wrong('must name relays by plain addresses');
  if (port !== '' && Number(port) < FIRST_FREE_PORT)
    throw wrong(`must name relays at port 443, or from ${FIRST_FREE_PORT} on`);
  return href;
}

function parsed(text: string): URL {
  if (!URL.canParse(text)) throw wrong('must be a connection string: nostr+walletconnect://…');
  return new URL(text);
}

/** A public key is the x coordinate of a point. */
function isPoint(pubkey: string): boolean {
  return succeeds(() => ECDH.convertKey(`02${pubkey}`, CURVE, 'hex'));
}

function isSecret(secret: string): boolean {
  return succeeds(() => createECDH(CURVE).setPrivateKey(secret, 'hex'));
}

function succeeds(act: () => unknown): boolean {
  try {
    act();
    return true;
  } catch {
    return false;
  }
}

function wrong(what: string): InvalidRequestError {
  return new InvalidRequestError(400, `nwc_url ${what}`, 'nwc_url');
}
