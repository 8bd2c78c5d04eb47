/**
 * A Monero wallet on the simulated chain, with the API of `monero-wallet-rpc`. The formats are those of responses by
 * Monero 0.18. A transfer is what a transaction pays to one subaddress. A transfer has `confirmations` only if its
 * transaction is in a block. Empty lists of transfers are left out, and so are dropped transactions.
 */
import type { Chain, Transaction } from '../chains/chain.ts';
import { type Call, parseObject, type Routes } from '../router.ts';
import { DigestLogin } from './digest-login.ts';

const SPENDABLE_AFTER_BLOCKS = 10;

type Params = Readonly<Record<string, unknown>>;
interface Subaddress {
  readonly address: string;
  readonly label: string;
}

/** A JSON-RPC error; its HTTP status is 200. */
class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

export function moneroRoutes(chain: Chain): Routes {
  const wallet = new MoneroPeer(chain);
  const login = new DigestLogin('sandbox', 'sandbox');
  return {
    'POST /monero/json_rpc': async (call) => {
      login.assert(call);
      await wallet.serve(call);
    },
  };
}

class MoneroPeer {
  private readonly subaddresses: Subaddress[];

  constructor(private readonly chain: Chain) {
    this.subaddresses = [{ address: chain.createAddress(), label: 'Primary account' }];
  }

  async serve(call: Call): Promise<void> {
    const request = parseObject(await call.readText());
    const envelope = { id: request?.id ?? 0, jsonrpc: '2.0' };
    try {
      if (!request) throw new RpcError(-32700, 'Parse error');
      const result = this.execute(String(request.method), (request.params ?? {}) as Params);
      call.sendJsonText(200, JSON.stringify({ ...envelope, result }, toJsonAmount));
    } catch (error) {
      if (!(error instanceof RpcError)) throw error;
      call.sendJson(200, { error: { code: error.code, message: error.message }, ...envelope });
    }
  }

  private execute(method: string, params: Params): object {
    if (method === 'get_height') return { height: this.chain.height + 1 };
    if (method === 'store') return {};
    if (method === 'create_address') return this.createAddress(params);
    if (method === 'get_address') return this.addresses(params);
    if (method === 'get_transfers') return this.transfers(params);
    throw new RpcError(-32601, 'Method not found');
  }

  private createAddress({ label = '' }: Params): object {
    const address = this.chain.createAddress();
    const address_index = this.subaddresses.push({ address, label: String(label) }) - 1;
    return { address, address_index, address_indices: [address_index], addresses: [address] };
  }

  private addresses({ address_index }: Params): object {
    const indices = parseIndices(address_index);
    const addresses = (indices.length > 0 ? indices : this.subaddresses.keys().toArray()).map((index) => {
      const subaddress = this.subaddresses[index];
      if (!subaddress) throw new RpcError(-15, 'address index is out of bound');
      return {
        ...subaddress,
        address_index: index,
        used: this.chain.listTransactionsTo(subaddress.address).length > 0,
      };
    });
    return { address: this.subaddresses[0]?.address, addresses };
  }

  /** Without indices all subaddresses are included. */
  private transfers({ subaddr_indices, in: mined, pool }: Params): object {
    const indices = parseIndices(subaddr_indices);
    const all = (indices.length > 0 ? indices : this.subaddresses.keys().toArray()).flatMap((index) =>
      this.paidTo(index).map((transaction) => ({ index, transaction })),
    );
    const [inBlocks = [], waiting = []] = [true, false].map((isMined) =>
      all
        .filter(({ transaction }) => (transaction.height !== undefined) === isMined)
        .map(({ index, transaction }) => this.toTransferJson(index, transaction)),
    );
    return {
      ...(mined === true && inBlocks.length > 0 ? { in: inBlocks } : {}),
      ...(pool === true && waiting.length > 0 ? { pool: waiting } : {}),
    };
  }

  private paidTo(index: number): readonly Transaction[] {
    const subaddress = this.subaddresses[index];
    return subaddress ? this.chain.listTransactionsTo(subaddress.address).filter(({ isDropped }) => !isDropped) : [];
  }

  private toTransferJson(minor: number, transaction: Transaction): object {
    const { id, outputs, height, seenAt, unlockHeight } = transaction;
    const address = this.subaddresses[minor]?.address ?? '';
    const amounts = outputs.filter((output) => output.address === address).map(({ units }) => units);
    const confirmations = this.chain.countConfirmations(transaction);
    const isLocked = confirmations < SPENDABLE_AFTER_BLOCKS || this.chain.height < unlockHeight;
    return {
      address,
      amount: amounts.reduce((sum, amount) => sum + amount, 0n),
      amounts,
      ...(height === undefined ? {} : { confirmations }),
      double_spend_seen: false,
      fee: 2_605_200_000,
      height: height ?? 0,
      locked: isLocked,
      note: '',
      payment_id: '0000000000000000',
      subaddr_index: { major: 0, minor },
      subaddr_indices: [{ major: 0, minor }],
      suggested_confirmations_threshold: 1,
      timestamp: Math.floor(seenAt / 1000),
      txid: id,
      type: height === undefined ? 'pool' : 'in',
      unlock_time: unlockHeight,
    };
  }
}

function parseIndices(value: unknown): readonly number[] {
  return Array.isArray(value) ? [...new Set(value.map(Number))] : [];
}

/** Amounts are JSON numbers with all digits. */
function toJsonAmount(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? JSON.rawJSON(value.toString()) : value;
}
