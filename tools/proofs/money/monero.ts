/**
 * A Monero network of one real node (`monerod --regtest`), whose blocks are mined on demand, a merchant's wallet that can
 * only see (its spend key is not on this server), and a customer's that owns what was mined. All on loopback.
 */
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { WalletRpc } from '../../../libs/connectors/src/payments/monero/wallet-rpc.ts';
import { type Started, start } from '../../processes.ts';
import { unpack } from './debian.ts';
import { freePorts } from './ports.ts';

/** Debian 12's. */
const VERSION = '0.18.0.0+~0+20200826-1+deb12u1';
/** A wallet spends what was mined sixty blocks ago, and mixes it with outputs of others. */
const FIRST_BLOCKS = 120;
const LOGIN = 'shop:a pass:word';
const REFRESH_SECONDS = 1;

export interface MoneroPayment {
  readonly address: string;
  readonly units: bigint;
}

export class MoneroNetwork {
  private constructor(
    private readonly ports: Ports,
    private readonly payerAddress: string,
    private readonly openMerchant: () => Promise<Started>,
    private merchant: Started,
  ) {}

  /**
   * @param directory for chain and wallets
   * @param ended what is started, so that it ends however this does
   */
  static async start(directory: string, ended: AsyncDisposableStack): Promise<MoneroNetwork> {
    const { bin, env } = await unpack('monero', VERSION);
    const ports = await freePorts('node', 'peers', 'payer', 'merchant');
    const at = (name: string) => path.join(directory, name);
    await mkdir(at('wallets'), { recursive: true });
    const keep = async (program: string, options: readonly string[], ready: RegExp): Promise<Started> => {
      const started = await start([path.join(bin, program), ...options], env, ready);
      ended.defer(() => started.stop());
      return started;
    };
    await keep('monerod', nodeOptions(at('node'), ports), /RPC server started ok/);
    const walletRpc = (port: number, ...more: string[]) =>
      keep('monero-wallet-rpc', [...walletOptions(directory, port, ports), ...more], /Starting wallet/);
    await walletRpc(ports.payer, '--wallet-dir', at('wallets'), '--disable-rpc-login');
    const payerAddress = await makeWallets(ports.payer);
    const openMerchant = () =>
      walletRpc(ports.merchant, '--wallet-file', at('wallets/merchant'), '--password', '', '--rpc-login', LOGIN);
    const network = new MoneroNetwork(ports, payerAddress, openMerchant, await openMerchant());
    await network.letMerchantRefresh();
    await network.mine(FIRST_BLOCKS);
    return network;
  }

  /** How the program reaches the merchant's wallet. */
  get settings(): Record<string, string> {
    return { MONERO_WALLET_RPC_URL: `http://127.0.0.1:${this.ports.merchant}`, MONERO_WALLET_RPC_LOGIN: LOGIN };
  }

  /** How a contract's suite reaches all of it. */
  get testSettings(): Record<string, string> {
    const { merchant, payer, node } = this.ports;
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
    await rpc(this.ports.node, 'generateblocks', params);
    await this.ofPayer('refresh', {});
  }

  /** Mines on, a block every second. @returns what ends it */
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

  async height(): Promise<number> {
    return Number((await this.ofPayer('get_height', {})).height);
  }

  /** Piconeros that the merchant's wallet has seen. */
  async received(): Promise<bigint> {
    const wallet = this.merchantRpc();
    const { balance } = await wallet.call('get_balance', { account_index: 0 });
    await wallet.close();
    return BigInt(balance as number);
  }

  /** One transaction. @param unlock_time a block before which what it pays cannot be spent @returns its id */
  async pay(payments: readonly MoneroPayment[], unlock_time = 0): Promise<string> {
    const destinations = payments.map(({ address, units }) => ({ address, amount: Number(units) }));
    const { tx_hash } = await this.ofPayer('transfer', { destinations, unlock_time });
    return String(tx_hash);
  }

  /** A transaction that is in no block is forgotten, as after days in which nobody wanted it. */
  async forget(txid: string): Promise<void> {
    await rpc(this.ports.node, 'flush_txpool', { txids: [txid] });
  }

  /** The newest blocks are undone: what was in them waits again. */
  async undo(nblocks: number): Promise<void> {
    await asked(`http://127.0.0.1:${this.ports.node}/pop_blocks`, { nblocks });
  }

  async killMerchant(): Promise<void> {
    await this.merchant.kill();
  }

  async startMerchant(): Promise<void> {
    this.merchant = await this.openMerchant();
    await this.letMerchantRefresh();
  }

  /** It looks for blocks every 20 seconds otherwise. */
  private async letMerchantRefresh(): Promise<void> {
    const wallet = this.merchantRpc();
    await wallet.call('auto_refresh', { enable: true, period: REFRESH_SECONDS });
    await wallet.close();
  }

  private merchantRpc(): WalletRpc {
    return new WalletRpc(`http://127.0.0.1:${this.ports.merchant}`, LOGIN);
  }

  private ofPayer(method: string, params: object): Promise<Readonly<Record<string, unknown>>> {
    return rpc(this.ports.payer, method, params);
  }
}

interface Ports {
  readonly node: number;
  readonly peers: number;
  readonly payer: number;
  readonly merchant: number;
}

function nodeOptions(directory: string, { node, peers }: Ports): readonly string[] {
  return [
    ...['--regtest', '--offline', '--fixed-difficulty', '1', '--data-dir', directory, '--non-interactive', '--no-zmq'],
    ...['--rpc-bind-ip', '127.0.0.1', '--rpc-bind-port', String(node), '--no-igd', '--disable-dns-checkpoints'],
    ...['--p2p-bind-ip', '127.0.0.1', '--p2p-bind-port', String(peers)],
  ];
}

function walletOptions(directory: string, port: number, { node }: Ports): readonly string[] {
  return [
    ...['--daemon-address', `127.0.0.1:${node}`, '--trusted-daemon', '--non-interactive', '--no-dns'],
    ...['--rpc-bind-ip', '127.0.0.1', '--rpc-bind-port', String(port)],
    ...['--shared-ringdb-dir', path.join(directory, 'rings'), '--log-file', path.join(directory, `wallet-${port}.log`)],
  ];
}

/** The merchant's wallet is made from the address and the view key of one that stays elsewhere. @returns the payer's address */
async function makeWallets(port: number): Promise<string> {
  await rpc(port, 'create_wallet', { filename: 'elsewhere', language: 'English' });
  const { address } = await rpc(port, 'get_address', { account_index: 0 });
  const { key: viewkey } = await rpc(port, 'query_key', { key_type: 'view_key' });
  await rpc(port, 'generate_from_keys', { filename: 'merchant', address, viewkey, password: '', restore_height: 0 });
  await rpc(port, 'close_wallet', {});
  await rpc(port, 'create_wallet', { filename: 'payer', language: 'English' });
  return String((await rpc(port, 'get_address', { account_index: 0 })).address);
}

/** Of a server without a login. */
async function rpc(port: number, method: string, params: object): Promise<Readonly<Record<string, unknown>>> {
  const body = { jsonrpc: '2.0', id: '0', method, params };
  return (await asked(`http://127.0.0.1:${port}/json_rpc`, body)).result as Readonly<Record<string, unknown>>;
}

async function asked(url: string, body: object): Promise<{ readonly result?: unknown }> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
  const answer = (await response.json()) as { error?: object; result?: unknown };
  if (answer.error) throw new Error(`${url} refused ${JSON.stringify(body)}: ${JSON.stringify(answer.error)}`);
  return answer;
}
