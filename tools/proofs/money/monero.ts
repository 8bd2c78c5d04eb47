/**
 * A Monero network of one real node (`monerod --regtest`) on loopback, whose blocks are mined on demand. The merchant
 * has a view-only wallet, whose spend key is not on its wallet server. The payer's wallet owns the mined coins.
 */
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { WalletRpc } from '../../../libs/connectors/src/payments/monero/wallet-rpc.ts';
import { type StartedProcess, startProgram } from '../../processes.ts';
import { unpackDebianPackage } from './debian.ts';
import { allocatePortNumbers } from './ports.ts';

/** The version in Debian 12. */
const VERSION = '0.18.0.0+~0+20200826-1+deb12u1';
/** A wallet can spend mined coins after sixty blocks, and needs other outputs to mix them with. */
const FIRST_BLOCKS = 120;
const LOGIN = 'shop:a pass:word';
const REFRESH_SECONDS = 1;

export interface MoneroPayment {
  readonly address: string;
  readonly units: bigint;
}

export class MoneroNetwork {
  private constructor(
    private readonly portNumbers: PortNumbers,
    private readonly payerAddress: string,
    private readonly openMerchant: () => Promise<StartedProcess>,
    private merchant: StartedProcess,
  ) {}

  /**
   * @param directory the data directory of chain and wallets
   * @param ended collects what is started, so that the caller ends it in any case
   */
  static async start(directory: string, ended: AsyncDisposableStack): Promise<MoneroNetwork> {
    const { bin, env } = await unpackDebianPackage('monero', VERSION);
    const portNumbers = await allocatePortNumbers('node', 'peers', 'payer', 'merchant');
    const getDirectory = (name: string) => path.join(directory, name);
    await mkdir(getDirectory('wallets'), { recursive: true });
    const startProcess = async (
      program: string,
      options: readonly string[],
      ready: RegExp,
    ): Promise<StartedProcess> => {
      const started = await startProgram([path.join(bin, program), ...options], env, ready);
      ended.defer(() => started.stop());
      return started;
    };
    await startProcess('monerod', createNodeOptions(getDirectory('node'), portNumbers), /RPC server started ok/);
    const startWalletRpc = (port: number, ...extraOptions: string[]) =>
      startProcess(
        'monero-wallet-rpc',
        [...createWalletOptions(directory, port, portNumbers), ...extraOptions],
        /Starting wallet/,
      );
    await startWalletRpc(portNumbers.payer, '--wallet-dir', getDirectory('wallets'), '--disable-rpc-login');
    const payerAddress = await createWallets(portNumbers.payer);
    const openMerchant = () =>
      startWalletRpc(
        portNumbers.merchant,
        '--wallet-file',
        getDirectory('wallets/merchant'),
        '--password',
        '',
        '--rpc-login',
        LOGIN,
      );
    const network = new MoneroNetwork(portNumbers, payerAddress, openMerchant, await openMerchant());
    await network.letMerchantRefresh();
    await network.mine(FIRST_BLOCKS);
    return network;
  }

  /** The settings with which the roles connect to the merchant's wallet. */
  get settings(): Record<string, string> {
    return { MONERO_WALLET_RPC_URL: `http://127.0.0.1:${this.portNumbers.merchant}`, MONERO_WALLET_RPC_LOGIN: LOGIN };
  }

  /** The settings with which the contract suite connects to node and wallets. */
  get testSettings(): Record<string, string> {
    const { merchant, payer, node } = this.portNumbers;
    return {
      MONERO_TEST_URL: `http://127.0.0.1:${merchant}`,
      MONERO_TEST_LOGIN: LOGIN,
      MONERO_TEST_PAYER_URL: `http://127.0.0.1:${payer}`,
      MONERO_TEST_NODE_URL: `http://127.0.0.1:${node}`,
      MONERO_TEST_MINER: this.payerAddress,
    };
  }

  async mine(amount_of_blocks: number): Promise<void> {
    const params = { amount_of_blocks, wallet_address: this.payerAddress };
    await callRpc(this.portNumbers.node, 'generateblocks', params);
    await this.callPayer('refresh', {});
  }

  /** Mines a block every second. @returns a function that stops mining */
  mineOn(): () => Promise<void> {
    let ended = false;
    const mining = (async () => {
      while (!ended) {
        await this.mine(1);
        await new Promise((resolve) => setTimeout(resolve, 1_000));
      }
    })();
    return () => {
      ended = true;
      return mining;
    };
  }

  async getHeight(): Promise<number> {
    return Number((await this.callPayer('get_height', {})).height);
  }

  /** Returns the balance of the merchant's wallet in piconero. */
  async getReceivedAmount(): Promise<bigint> {
    const wallet = this.callMerchant();
    const { balance } = await wallet.call('get_balance', { account_index: 0 });
    await wallet.close();
    return BigInt(balance as number);
  }

  /**
   * Pays with one transaction.
   * @param unlock_time the block until which the outputs are locked; 0 if they are not locked
   * @returns the id of the transaction
   */
  async pay(payments: readonly MoneroPayment[], unlock_time = 0): Promise<string> {
    const destinations = payments.map(({ address, units }) => ({ address, amount: Number(units) }));
    const { tx_hash } = await this.callPayer('transfer', { destinations, unlock_time });
    return String(tx_hash);
  }

  /** Drops a transaction that is in no block, as nodes do with transactions that stay unconfirmed for days. */
  async dropTransaction(txid: string): Promise<void> {
    await callRpc(this.portNumbers.node, 'flush_txpool', { txids: [txid] });
  }

  /** Removes the newest blocks. Their transactions are pending again. */
  async undo(nblocks: number): Promise<void> {
    await postJson(`http://127.0.0.1:${this.portNumbers.node}/pop_blocks`, { nblocks });
  }

  async killMerchant(): Promise<void> {
    await this.merchant.kill();
  }

  async startMerchant(): Promise<void> {
    this.merchant = await this.openMerchant();
    await this.letMerchantRefresh();
  }

  /** Makes the wallet poll for blocks every second; its default is 20 seconds. */
  private async letMerchantRefresh(): Promise<void> {
    const wallet = this.callMerchant();
    await wallet.call('auto_refresh', { enable: true, period: REFRESH_SECONDS });
    await wallet.close();
  }

  private callMerchant(): WalletRpc {
    return new WalletRpc(`http://127.0.0.1:${this.portNumbers.merchant}`, () => LOGIN);
  }

  private callPayer(method: string, params: object): Promise<Readonly<Record<string, unknown>>> {
    return callRpc(this.portNumbers.payer, method, params);
  }
}

interface PortNumbers {
  readonly node: number;
  readonly peers: number;
  readonly payer: number;
  readonly merchant: number;
}

function createNodeOptions(directory: string, { node, peers }: PortNumbers): readonly string[] {
  return [
    '--regtest',
    '--offline',
    '--fixed-difficulty',
    '1',
    '--data-dir',
    directory,
    '--non-interactive',
    '--no-zmq',
    '--rpc-bind-ip',
    '127.0.0.1',
    '--rpc-bind-port',
    String(node),
    '--no-igd',
    '--disable-dns-checkpoints',
    '--p2p-bind-ip',
    '127.0.0.1',
    '--p2p-bind-port',
    String(peers),
  ];
}

function createWalletOptions(directory: string, port: number, { node }: PortNumbers): readonly string[] {
  return [
    '--daemon-address',
    `127.0.0.1:${node}`,
    '--trusted-daemon',
    '--non-interactive',
    '--no-dns',
    '--rpc-bind-ip',
    '127.0.0.1',
    '--rpc-bind-port',
    String(port),
    '--shared-ringdb-dir',
    path.join(directory, 'rings'),
    '--log-file',
    path.join(directory, `wallet-${port}.log`),
  ];
}

/**
 * Creates the merchant's view-only wallet, from the address and the view key of a new wallet, and the payer's wallet.
 * @returns the payer's address
 */
async function createWallets(port: number): Promise<string> {
  await callRpc(port, 'create_wallet', { filename: 'elsewhere', language: 'English' });
  const { address } = await callRpc(port, 'get_address', { account_index: 0 });
  const { key: viewkey } = await callRpc(port, 'query_key', { key_type: 'view_key' });
  await callRpc(port, 'generate_from_keys', {
    filename: 'merchant',
    address,
    viewkey,
    password: '',
    restore_height: 0,
  });
  await callRpc(port, 'close_wallet', {});
  await callRpc(port, 'create_wallet', { filename: 'payer', language: 'English' });
  return String((await callRpc(port, 'get_address', { account_index: 0 })).address);
}

/** Calls a server that requires no login. */
async function callRpc(port: number, method: string, params: object): Promise<Readonly<Record<string, unknown>>> {
  const body = { jsonrpc: '2.0', id: '0', method, params };
  return (await postJson(`http://127.0.0.1:${port}/json_rpc`, body)).result as Readonly<Record<string, unknown>>;
}

async function postJson(url: string, body: object): Promise<{ readonly result?: unknown }> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
  const reply = (await response.json()) as { error?: object; result?: unknown };
  if (reply.error) throw new Error(`${url} rejected ${JSON.stringify(body)}: ${JSON.stringify(reply.error)}`);
  return reply;
}
