import type { WalletAddress } from '#domain';

/** A wallet that can pay invoices, and the secret key with which it is requested to pay. */
export interface WalletConnection extends WalletAddress {
  /** 64 hexadecimal digits. Anyone who has it can spend what the wallet allows. */
  readonly secret: string;
}

/** The response of a wallet to a request to pay an invoice: that it has paid, or an error. */
export interface WalletResponse {
  /** `PAID`, or a code of NIP-47. */
  readonly code: string;
  /** The wallet's message about an error: a short line of plain text. */
  readonly why?: string;
}

/** The port to customers' wallets (Nostr Wallet Connect). */
export abstract class Wallets {
  /**
   * Parses a connection string, and requests the capabilities of the wallet.
   * @throws InvalidRequestError (400) with the reason if the string is invalid, or the wallet cannot be reached or
   *   cannot pay; UpstreamError if too many wallets are being connected
   */
  abstract connect(url: string): Promise<WalletConnection>;

  /**
   * Sends a wallet one request to pay an invoice, and returns when the request was sent. `onResponse` gets the
   * response, perhaps much later or never. Only the payment backend knows for certain whether the invoice was paid.
   * @throws WalletUnreachableError if nothing was sent; any other error if it is unknown whether the request was sent
   */
  abstract pay(
    wallet: WalletConnection,
    invoice: string,
    onResponse: (response: WalletResponse) => void,
  ): Promise<void>;

  abstract close(): Promise<void>;
}

/** The wallet cannot be reached or used, so nothing was sent. */
export class WalletUnreachableError extends Error {
  override readonly name = 'WalletUnreachableError';
}
