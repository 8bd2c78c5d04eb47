/** Parses the responses of wallets (NIP-47). */
import { sanitizeThirdPartyText, type WalletResponse } from '#application';
import { PAID_CODE } from '#domain';

const CODE = /^[A-Z][A-Z_]{0,39}$/;

/** A decrypted response. */
export interface Nip47Response {
  readonly result_type?: unknown;
  readonly error?: unknown;
  readonly result?: unknown;
}

/** Returns the result of a response. @throws Nip47Error for an error response */
export function getNip47Result(response: Nip47Response): Readonly<Record<string, unknown>> {
  const { code, why } = toWalletResponse(response);
  if (code !== PAID_CODE) throw new Nip47Error(code, why);
  const { result } = response;
  return typeof result === 'object' && result !== null ? (result as Readonly<Record<string, unknown>>) : {};
}

/** A wallet has responded with an error. */
export class Nip47Error extends Error {
  override readonly name = 'Nip47Error';

  constructor(
    readonly code: string,
    reason = code,
  ) {
    super(reason);
  }
}

/** Ignores the preimage. The payment backend reports whether an invoice is paid, so no proof is needed. */
export function toWalletResponse({ error }: Nip47Response): WalletResponse {
  if (error === null || error === undefined) return { code: PAID_CODE };
  const { code, message } = (typeof error === 'object' ? error : {}) as { code?: unknown; message?: unknown };
  const reason = typeof message === 'string' ? sanitizeThirdPartyText(message) : '';
  const errorCode = typeof code === 'string' && CODE.test(code) && code !== PAID_CODE ? code : 'OTHER';
  return { code: errorCode, ...(reason === '' ? {} : { why: reason }) };
}
