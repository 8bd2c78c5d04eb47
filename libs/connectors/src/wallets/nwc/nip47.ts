/** What wallets answer, by NIP-47. */
import type { WalletAnswer } from '#application';
import { PAID } from '#domain';

const MAX_WHY_LENGTH = 200;
const CODE = /^[A-Z][A-Z_]{0,39}$/;

/** A response, decrypted. */
export interface Nip47Response {
  readonly result_type?: unknown;
  readonly error?: unknown;
  readonly result?: unknown;
}

/** The result of a request. @throws Nip47Error */
export function resultOf(response: Nip47Response): Readonly<Record<string, unknown>> {
  const { code, why } = answerOf(response);
  if (code !== PAID) throw new Nip47Error(code, why);
  const { result } = response;
  return typeof result === 'object' && result !== null ? (result as Readonly<Record<string, unknown>>) : {};
}

/** A wallet has answered with an error. */
export class Nip47Error extends Error {
  override readonly name = 'Nip47Error';

  constructor(
    readonly code: string,
    why = code,
  ) {
    super(why);
  }
}

/** A preimage is not read: it proves to others that an invoice was paid, and our own node knows. */
export function answerOf({ error }: Nip47Response): WalletAnswer {
  if (error === null || error === undefined) return { code: PAID };
  const { code, message } = (typeof error === 'object' ? error : {}) as { code?: unknown; message?: unknown };
  const why = typeof message === 'string' ? plainLine(message) : '';
  const known = typeof code === 'string' && CODE.test(code) && code !== PAID ? code : 'OTHER';
  return { code: known, ...(why === '' ? {} : { why }) };
}

/** It is shown and kept: one short line, without what a careless wallet may put there, such as keys and preimages. */
function plainLine(text: string): string {
  const line = text.replace(/\p{C}+/gu, ' ').replace(/[0-9a-f]{32,}/gi, '…');
  return line.trim().slice(0, MAX_WHY_LENGTH);
}
