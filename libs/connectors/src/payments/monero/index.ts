/**
 * A Monero wallet through `monero-wallet-rpc`. Each top-up has its own subaddress. The wallet needs no spend key. A
 * payment is the sum of all outputs of one transaction to one subaddress. The id of a payment is `txid/major/minor`.
 *
 * Unexpected behaviour, observed with Monero 0.18:
 * - A new address is lost, and issued again, if the wallet server dies before it has stored the address.
 * - A transaction that a reorganisation rolls back disappears without a trace.
 * - As soon as a transaction is in a block, its time is that of the block.
 * - An empty list of subaddresses selects all of them.
 */
import {
  type BackendPayment,
  type CreatedPayment,
  type PaymentBackend,
  type PaymentRequest,
  UpstreamError,
} from '#application';
import { ResponseTooLargeError, runAfterCreation } from '../backend-http.ts';
import { type BackendKind, hasSettings } from '../backend-kind.ts';
import { createEmptySubscription } from '../no-hints.ts';
import { parseTransfers, type Transfer } from './transfers.ts';
import { WalletRpc } from './wallet-rpc.ts';

const ACCOUNT = 0;
const MAX_BATCH_SIZE = 200;
/** Maximum difference between the time of a block and the clock of the gateway. */
const CLOCK_TOLERANCE_SECONDS = 2 * 3600;
/** A payment is lost if it is missing for this many blocks. Until then it may still enter another block. */
const LOST_AFTER_BLOCKS = 10;

export interface MoneroSettings {
  /** Address of `monero-wallet-rpc`, without the `/json_rpc`. */
  readonly moneroUrl: string | undefined;
  /** `user:password` of its `--rpc-login`; undefined if it requires none. */
  readonly moneroLogin: string | undefined;
}

export const monero: BackendKind<MoneroSettings> = {
  name: 'monero',
  credentialSetting: 'MONERO_WALLET_RPC_LOGIN',
  accepts: ({ code }, kind) => code === 'XMR' && kind === 'address',
  open: (settings) => (hasSettings(settings, 'moneroUrl') ? new MoneroBackend(settings) : undefined),
};

/** Number of characters of an address in a reference, sufficient to distinguish the addresses of two wallets. */
const SUFFIX_LENGTH = 12;

/** A parsed reference: `7:1795342963:3270000:4Kx…:RC5gFq…`. */
interface ReceivingAddress {
  readonly reference: string;
  readonly minor: number;
  /** When the address was issued, in Unix seconds. Payments long before that belong to another top-up. */
  readonly createdAtSeconds: number;
  /** Height of the wallet when it issued the address. A wallet below this height may not know all payments. */
  readonly height: number;
  /** Id of the top-up: the label of the address. A restored wallet may issue the address for another top-up. */
  readonly topupId: string;
  /** The end of the address. Another wallet has another address with the same number. */
  readonly addressSuffix: string;
}

const REFERENCE = /^(\d{1,10}):(\d{1,12}):(\d{1,10}):([^:]+):([^:]+)$/;

/** An address as the wallet returns it now. */
interface WalletAddress {
  readonly address?: unknown;
  readonly address_index?: unknown;
  readonly label?: unknown;
}

export class MoneroBackend implements PaymentBackend {
  readonly name = monero.name;
  readonly maxBatchSize = MAX_BATCH_SIZE;
  private readonly rpc: WalletRpc;
  /** The height at which a received payment was first found missing, by payment id. */
  private readonly missingSinceHeight = new Map<string, number>();
  /** The highest observed height. */
  private height = 0;

  constructor(
    settings: MoneroSettings & { readonly moneroUrl: string },
    /** Milliseconds since 1970. */
    private readonly now: () => number = Date.now,
  ) {
    this.rpc = new WalletRpc(settings.moneroUrl, () => settings.moneroLogin);
  }

  async createPayment({ topupId }: PaymentRequest): Promise<CreatedPayment> {
    const response = await this.rpc.call('create_address', { account_index: ACCOUNT, label: topupId });
    const { address, address_index: minor } = response;
    if (typeof address !== 'string' || !Number.isSafeInteger(minor) || Number(minor) < 1) {
      throw new UpstreamError('upstream_error', 'The Monero wallet did not create an address');
    }
    const height = await runAfterCreation(async () => {
      await this.rpc.call('store', {});
      return this.fetchHeight();
    });
    const reference = `${minor}:${Math.floor(this.now() / 1000)}:${height}:${topupId}:${getSuffix(address)}`;
    return { reference, destination: { kind: 'address', value: address } };
  }

  async fetchPayments(
    references: readonly string[],
    received: readonly string[] = [],
  ): Promise<readonly BackendPayment[]> {
    try {
      return await this.fetchAddressPayments(references.map(parseReference), received);
    } catch (error) {
      if (!(error instanceof ResponseTooLargeError) || references.length < 2) throw error;
    }
    // Some of these addresses have received many thousand payments. Payments to the others must still be found.
    const half = Math.ceil(references.length / 2);
    const payments: BackendPayment[] = [];
    for (const part of [references.slice(0, half), references.slice(half)]) {
      payments.push(...(await this.fetchPayments(part, received).catch(ignoreTooLarge)));
    }
    return payments;
  }

  subscribe(signal: AbortSignal): AsyncIterable<string> {
    return createEmptySubscription(signal);
  }

  close(): Promise<void> {
    return this.rpc.close();
  }

  private async fetchAddressPayments(
    addresses: readonly ReceivingAddress[],
    received: readonly string[],
  ): Promise<readonly BackendPayment[]> {
    if (addresses.length === 0) return [];
    await this.assertUpToDate(addresses);
    const indices = [...new Set(addresses.map(({ minor }) => minor))];
    const walletAddresses = await this.fetchAddresses(indices);
    const params = { account_index: ACCOUNT, subaddr_indices: indices, in: true, pool: true };
    const transfers = parseTransfers(await this.rpc.call('get_transfers', params), ACCOUNT);
    const byMinor = Map.groupBy(transfers, ({ minor }) => minor);
    const validAddresses = addresses.filter((address) => isCurrentAddress(address, walletAddresses.get(address.minor)));
    const payments = validAddresses.flatMap((address) =>
      (byMinor.get(address.minor) ?? []).flatMap((transfer) => toPayments(address, transfer)),
    );
    const presentIds = new Set(transfers.map(toPaymentId));
    for (const id of presentIds) this.missingSinceHeight.delete(id);
    const missingIds = received.filter((id) => !presentIds.has(id));
    return [...payments, ...this.findLostPayments(validAddresses, missingIds)];
  }

  private async fetchHeight(): Promise<number> {
    const { height } = await this.rpc.call('get_height', {});
    if (Number.isSafeInteger(height) && Number(height) > 0) return Number(height);
    throw new UpstreamError('upstream_error', 'The Monero wallet does not know the height of its chain');
  }

  /**
   * @throws UpstreamError if the wallet is more than `LOST_AFTER_BLOCKS` below the highest known height. Payments that
   * a wallet has not found yet while it rescans the chain are not lost.
   */
  private async assertUpToDate(addresses: readonly ReceivingAddress[]): Promise<void> {
    const height = await this.fetchHeight();
    this.height = Math.max(this.height, height, ...addresses.map((address) => address.height));
    if (height >= this.height - LOST_AFTER_BLOCKS) return;
    const message = 'The height of the Monero wallet has decreased; it may be rescanning the chain';
    throw new UpstreamError('upstream_error', message);
  }

  private async fetchAddresses(indices: readonly number[]): Promise<ReadonlyMap<unknown, WalletAddress>> {
    const { addresses } = await this.rpc.call('get_address', { account_index: ACCOUNT, address_index: indices });
    const entries = Array.isArray(addresses) ? (addresses as readonly WalletAddress[]) : [];
    return new Map(entries.map((entry) => [entry.address_index, entry]));
  }

  /** Returns the received payments that have been missing for `LOST_AFTER_BLOCKS`: the network has rolled them back. */
  private findLostPayments(
    addresses: readonly ReceivingAddress[],
    missingIds: readonly string[],
  ): readonly BackendPayment[] {
    const byMinor = new Map(addresses.map((address) => [address.minor, address]));
    const receivedAt = new Date(this.now()).toISOString();
    return missingIds.flatMap((id) => {
      const address = byMinor.get(Number(id.split('/')[2]));
      if (!address) return [];
      const since = this.missingSinceHeight.get(id) ?? this.height;
      this.missingSinceHeight.set(id, since);
      if (this.height - since < LOST_AFTER_BLOCKS) return [];
      return [{ reference: address.reference, id, units: 0n, confirmations: 'lost' as const, receivedAt }];
    });
  }
}

function ignoreTooLarge(error: unknown): readonly BackendPayment[] {
  if (error instanceof ResponseTooLargeError) return [];
  throw error;
}

function parseReference(reference: string): ReceivingAddress {
  const [, minor, since, height, topupId = '', end = ''] = REFERENCE.exec(reference) ?? [];
  if (minor === undefined) throw new Error(`"${reference}" is not a reference of a Monero address`);
  return {
    reference,
    minor: Number(minor),
    createdAtSeconds: Number(since),
    height: Number(height),
    topupId,
    addressSuffix: end,
  };
}

/** Whether the address still belongs to the top-up. A wallet that was restored from its seed has no labels. */
function isCurrentAddress(
  { topupId, addressSuffix }: ReceivingAddress,
  walletAddress: WalletAddress | undefined,
): boolean {
  return (
    walletAddress !== undefined &&
    getSuffix(walletAddress.address) === addressSuffix &&
    ['', topupId].includes(String(walletAddress.label ?? ''))
  );
}

function getSuffix(address: unknown): string {
  return String(address).slice(-SUFFIX_LENGTH);
}

function toPaymentId({ txid, minor }: Transfer): string {
  return `${txid}/${ACCOUNT}/${minor}`;
}

function toPayments({ reference, createdAtSeconds }: ReceivingAddress, transfer: Transfer): readonly BackendPayment[] {
  const { units, confirmations, receivedAt, seconds, isTrusted } = transfer;
  if (!isTrusted || seconds < createdAtSeconds - CLOCK_TOLERANCE_SECONDS) return [];
  return [{ reference, id: toPaymentId(transfer), units, confirmations, receivedAt }];
}
