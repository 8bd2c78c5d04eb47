/**
 * Text of third parties: providers, payment backends, wallets, relays. It may name accounts, keys and hosts of the
 * operator, and repeat what it was sent. So no error response, event or log line contains it unsanitised.
 */

/** Maximum length of third-party text in responses and events. */
const MAX_TEXT_LENGTH = 500;
/** Maximum length of the input. It far exceeds the output, so a secret that is cut off here is rarely in the output. */
const MAX_READ = 8 * MAX_TEXT_LENGTH;
const MASK = '…';

/** Patterns of what may be a credential, an internal id, an address or a path. Each runs in linear time. */
const SECRETS: readonly RegExp[] = [
  // URLs with everything in them: https, wss, postgres, data.
  /\b[a-z][a-z0-9+.-]{1,20}:\/\/\S+/gi,
  /\bdata:[\w/+.-]{0,80};base64,\S+/gi,
  // Values after the name of a credential: `Bearer x`, `api_key=x`, `"token": "x"`.
  /\b(?:bearer|basic|l402|lsat|macaroon|rune|preimage)\s+[^\s"',;]+/gi,
  /\b[\w-]{0,40}(?:api[ _-]?key|access[ _-]?key|token|secret|password|passwd|credential|authorization)["']?\s*[:=]\s*["']?[^\s"',;]+/gi,
  // Keys of providers, also partly masked ones such as `sk-proj-****abcd`.
  /\b(?:sk|pk|rk|key|whsec|gsk|xai|hf|r8|pplx|nvapi|fal|tgp|csk|cpk|AIza|AKIA|ASIA|ghp|glpat|eyJ)[-_]?(?=[\w*.-]{0,200}[\d*])[\w*.-]{6,}/g,
  // Ids of organisations, projects, users and accounts.
  /\b(?:org|organization|proj|project|user|acct|account|team|workspace|tenant|cus|customer|sub|billing)[-_][A-Za-z0-9]{6,}\b/g,
  /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?::\w+)?\b/gi,
  /\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+/g,
  // Hosts and the paths on them.
  /\b(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?\b/g,
  /(?<![\w:])\[?(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6})?::(?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6})?\]?(?::\d{1,5})?/gi,
  /\b(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}\b/gi,
  /\b(?:localhost|[\w-]{1,63}(?:\.[\w-]{1,63}){0,8}\.(?:internal|local|localdomain|lan|corp|intranet|svc|cluster|onion|arpa))\b(?::\d{1,5})?/gi,
  /(?<![\w/])\/(?:app|bin|data|dev|etc|home|mnt|opt|proc|root|run|srv|sys|tmp|usr|var|workspace|Users)\/\S+/g,
  // Long strings that are not words: hexadecimal, Base64, ids.
  /\b(?=\w{0,200}\d)(?=\w{0,200}[A-Za-z])\w{24,}/g,
  /(?<![\w+/])(?=[\w+/]{0,200}\d)(?=[\w+/]{0,200}[A-Z])(?=[\w+/]{0,200}[a-z])[A-Za-z0-9+/]{32,}={0,2}/g,
];

/**
 * Returns third-party text as a caller may see it: one line, without anything that resembles a secret, truncated.
 * Idempotent.
 */
export function sanitizeThirdPartyText(message: string): string {
  const line = message
    .slice(0, MAX_READ)
    .toWellFormed()
    .replace(/[\p{C}\s]+/gu, ' ')
    .trim();
  return truncateText(SECRETS.reduce((text, secret) => text.replace(secret, MASK), line));
}

/** Truncates a text to the maximum length in responses and events. */
export function truncateText(text: string): string {
  return text.length > MAX_TEXT_LENGTH ? `${text.slice(0, MAX_TEXT_LENGTH - MASK.length).toWellFormed()}${MASK}` : text;
}
