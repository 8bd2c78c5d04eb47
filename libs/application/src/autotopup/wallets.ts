import type { WalletAddress } from '#domain';

/** A wallet that can be asked to pay, and the secret key that lets it be asked. */
export interface WalletConnection extends WalletAddress {
  /** 64 hexadecimal digits. Whoever has it can spend what the wallet allows. */
  readonly secret: string;
}

/** What a wallet says about a request: it has paid, or an error with a code. */
export interface WalletResponse {
  /** `PAID`, or a code of NIP-47. */
  readonly code: string;
  /** What the wallet says beside an error: a short line of plain text. */
  readonly why?: string;
}

/** The port to customers' wallets (Nostr Wallet Connect). */
export abstract class Wallets {
  /**
   * Reads a connection string, and asks the wallet what it can do.
   * @throws InvalidRequestError (400) with the reason, when it is none, cannot be reached, or cannot pay
   */
  abstract connect(url: string): Promise<WalletConnection>;

  /**
   * Asks a wallet to pay an invoice, once, and returns when that has left. `onResponse` gets its answer, perhaps much later or
   * never: whether the invoice was paid is known by our own node alone.
   * @throws WalletUnreachableError when nothing has left; any other error when that is not known
   */
  abstract pay(
    wallet: WalletConnection,
    invoice: string,
    onResponse: (response: WalletResponse) => void,
  ): Promise<void>;

  abstract close(): Promise<void>;
}

/** No relay of a wallet could be reached, so that it was not asked. */
export class WalletUnreachableError extends Error {
  override readonly name = 'WalletUnreachableError';
}
