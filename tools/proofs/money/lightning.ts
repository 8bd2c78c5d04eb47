/**
 * A Lightning network of two real nodes (LND on btcd's regtest) on loopback: the shop's and a customer's, with a
 * channel through which the customer can pay.
 */
import { readFileSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { BackendHttp } from '../../../libs/connectors/src/payments/backend-http.ts';
import { type StartedProcess, startProgram } from '../../processes.ts';
import { buildGoPrograms, type GoProgramsParams } from './go.ts';
import { allocatePortNumbers } from './ports.ts';

const LND: GoProgramsParams = {
  name: 'lnd',
  modules: {
    'github.com/lightningnetwork/lnd': 'v0.18.5-beta',
    'github.com/btcsuite/btcd': 'v0.24.3-0.20240921052913-67b8efd3ba53',
  },
  programs: ['github.com/lightningnetwork/lnd/cmd/lnd', 'github.com/btcsuite/btcd'],
  replacements: {
    'google.golang.org/protobuf': 'github.com/lightninglabs/protobuf-go-hex-display v1.30.0-hex-display',
    'github.com/gogo/protobuf': 'github.com/gogo/protobuf v1.3.2',
    'github.com/ulikunitz/xz': 'github.com/ulikunitz/xz v0.5.11',
  },
};

/** Coinbase rewards can be spent after 100 blocks, and segregated witness is active after about 430. */
const FIRST_BLOCKS = 450;
const CHANNEL_SATS = 10_000_000;
const CHANNEL_BLOCKS = 6;
const READY_WITHIN_MS = 60_000;
const POLL_INTERVAL_MS = 200;
const RPC = { user: 'proof', password: 'proof' };

type Json = Readonly<Record<string, unknown>>;

/** An LND node with the client and credentials to call it. */
interface Node {
  readonly directory: string;
  readonly rest: number;
  readonly http: BackendHttp;
  /** Grants all permissions. */
  readonly macaroon: string;
  /** LND's `invoice.macaroon`, with which the roles create and read invoices. It does not permit payments. */
  readonly invoiceMacaroon: string;
}

export class LightningNetwork {
  private constructor(
    private readonly startShop: () => Promise<StartedProcess>,
    private readonly shop: Node,
    private readonly customer: Node,
    private running: StartedProcess,
  ) {}

  /**
   * @param directory the data directory of chain and nodes
   * @param ended collects what is started, so that the caller ends it in any case
   */
  static async start(directory: string, ended: AsyncDisposableStack): Promise<LightningNetwork> {
    const bin = await buildGoPrograms(LND);
    const portNumbers = await allocatePortNumbers(
      'btcd',
      'rpc',
      'shop',
      'shopRest',
      'customer',
      'customerRest',
      'grpc',
      'grpc2',
    );
    const getDirectory = (name: string) => path.join(directory, name);
    await mkdir(directory, { recursive: true });
    const startProcess = async (command: readonly string[], ready: RegExp): Promise<StartedProcess> => {
      const started = await startProgram([...command], {}, ready);
      ended.defer(() => started.stop());
      return started;
    };
    const startBtcd = (...extraOptions: string[]) =>
      startProcess(
        [path.join(bin, 'btcd'), ...createBtcdOptions(directory, portNumbers), ...extraOptions],
        /RPC server listening/,
      );
    const startLnd = (name: 'shop' | 'customer') => {
      const grpc = name === 'shop' ? portNumbers.grpc : portNumbers.grpc2;
      const nodeOptions = [
        '--lnddir',
        getDirectory(name),
        `--listen=127.0.0.1:${portNumbers[name]}`,
        `--rpclisten=127.0.0.1:${grpc}`,
      ];
      const options = [
        ...createLndOptions(directory, portNumbers.rpc),
        ...nodeOptions,
        `--restlisten=127.0.0.1:${portNumbers[`${name}Rest`]}`,
      ];
      return startProcess([path.join(bin, 'lnd'), ...options], /Waiting for chain backend/);
    };
    const openNode = async (name: 'shop' | 'customer') => {
      const node = await connectNode(getDirectory(name), portNumbers[`${name}Rest`]);
      ended.defer(() => node.http.close());
      return node;
    };
    // The mining address belongs to a wallet, which needs a chain. So btcd is started again with the address.
    const first = await startBtcd();
    await startLnd('customer');
    const customer = await openNode('customer');
    const { address } = await callNode(customer, 'GET', '/v1/newaddress');
    await first.stop();
    await startBtcd(`--miningaddr=${address}`);
    const mining = new BackendHttp('btcd', `https://127.0.0.1:${portNumbers.rpc}`, {
      getCertificates: () => [readFileSync(getDirectory('rpc.cert'), 'utf8')],
    });
    ended.defer(() => mining.close());
    await mine(mining, FIRST_BLOCKS);
    const running = await startLnd('shop');
    const network = new LightningNetwork(() => startLnd('shop'), await openNode('shop'), customer, running);
    await network.openChannel(`127.0.0.1:${portNumbers.shop}`, () => mine(mining, CHANNEL_BLOCKS));
    return network;
  }

  /** The settings with which the roles connect to the shop's node. */
  get settings(): Record<string, string> {
    const { rest, invoiceMacaroon, directory } = this.shop;
    return {
      LND_REST_URL: `https://127.0.0.1:${rest}`,
      LND_MACAROON: invoiceMacaroon,
      LND_TLS_CERT: path.join(directory, 'tls.cert'),
    };
  }

  /** The settings with which the contract suite connects to both nodes. */
  get testSettings(): Record<string, string> {
    const { shop, customer } = this;
    return {
      LND_TEST_URL: `https://127.0.0.1:${shop.rest}`,
      LND_TEST_MACAROON: shop.invoiceMacaroon,
      LND_TEST_CERT: path.join(shop.directory, 'tls.cert'),
      LND_TEST_PAYER_URL: `https://127.0.0.1:${customer.rest}`,
      LND_TEST_PAYER_MACAROON: customer.macaroon,
      LND_TEST_PAYER_CERT: path.join(customer.directory, 'tls.cert'),
    };
  }

  /** Returns the satoshis that the customer has paid to the shop. */
  async getReceivedAmount(): Promise<bigint> {
    const { channels } = await callNode(this.customer, 'GET', '/v1/channels');
    const sent = (channels as readonly { total_satoshis_sent: string }[]).map((channel) =>
      BigInt(channel.total_satoshis_sent),
    );
    return sent.reduce((all, amount) => all + amount, 0n);
  }

  /** @returns the error with which the payment failed; empty if it succeeded */
  async pay(payment_request: string): Promise<string> {
    const sent = { payment_request, fee_limit: { fixed: '10' } };
    return String((await callNode(this.customer, 'POST', '/v1/channels/transactions', sent)).payment_error);
  }

  /** Pays `amt_msat` millisatoshis, whatever the amount of the invoice is. @returns the error; empty if it was paid */
  async payCustomAmount(payment_request: string, amt_msat: string): Promise<string> {
    const invoice = await callNode(this.customer, 'GET', `/v1/payreq/${payment_request}`);
    const { destination: dest_string, payment_hash: payment_hash_string, payment_addr, cltv_expiry } = invoice;
    const sent = { dest_string, payment_hash_string, payment_addr, final_cltv_delta: Number(cltv_expiry), amt_msat };
    return String((await callNode(this.customer, 'POST', '/v1/channels/transactions', sent)).payment_error);
  }

  async killShop(): Promise<void> {
    await this.running.kill();
  }

  async restartShop(): Promise<void> {
    this.running = await this.startShop();
    await this.waitUntilChannelWorks();
  }

  private async openChannel(host: string, mineBlocks: () => Promise<void>): Promise<void> {
    const { identity_pubkey: pubkey } = await waitUntilSynced(this.shop);
    await waitUntilSynced(this.customer);
    await callNode(this.customer, 'POST', '/v1/peers', { addr: { pubkey, host }, perm: true });
    await waitUntil(
      () => callNode(this.customer, 'GET', '/v1/peers'),
      ({ peers }) => Array.isArray(peers) && peers.length > 0,
    );
    const channel = { node_pubkey_string: pubkey, local_funding_amount: String(CHANNEL_SATS), sat_per_vbyte: '5' };
    await callNode(this.customer, 'POST', '/v1/channels', channel);
    await mineBlocks();
    await this.waitUntilChannelWorks();
  }

  private async waitUntilChannelWorks(): Promise<void> {
    for (const node of [this.shop, this.customer]) {
      await waitUntil(
        () => callNode(node, 'GET', '/v1/channels'),
        ({ channels }) => (channels as { active?: boolean }[] | undefined)?.[0]?.active === true,
      );
    }
    const { identity_pubkey: to } = await callNode(this.shop, 'GET', '/v1/getinfo');
    await waitUntil(
      () => callNode(this.customer, 'GET', `/v1/graph/routes/${to}/1000`),
      ({ routes }) => Array.isArray(routes) && routes.length > 0,
    );
  }
}

function createBtcdOptions(
  directory: string,
  { btcd, rpc }: { readonly btcd: number; readonly rpc: number },
): readonly string[] {
  const at = (name: string) => path.join(directory, name);
  return [
    '--regtest',
    '--configfile=/dev/null',
    `--datadir=${at('btcd')}`,
    `--logdir=${at('btcd-logs')}`,
    '--nodnsseed',
    `--listen=127.0.0.1:${btcd}`,
    `--rpclisten=127.0.0.1:${rpc}`,
    '--nostalldetect',
    '--txindex',
    `--rpcuser=${RPC.user}`,
    `--rpcpass=${RPC.password}`,
    `--rpccert=${at('rpc.cert')}`,
    `--rpckey=${at('rpc.key')}`,
  ];
}

function createLndOptions(directory: string, rpc: number): readonly string[] {
  return [
    '--configfile=/dev/null',
    '--bitcoin.active',
    '--bitcoin.regtest',
    '--bitcoin.node=btcd',
    '--noseedbackup',
    `--btcd.rpchost=127.0.0.1:${rpc}`,
    `--btcd.rpccert=${path.join(directory, 'rpc.cert')}`,
    `--btcd.rpcuser=${RPC.user}`,
    `--btcd.rpcpass=${RPC.password}`,
    '--nobootstrap',
    '--trickledelay=50',
  ];
}

async function connectNode(directory: string, rest: number): Promise<Node> {
  const http = new BackendHttp('LND', `https://127.0.0.1:${rest}`, {
    getCertificates: () => [readFileSync(path.join(directory, 'tls.cert'), 'utf8')],
  });
  const [macaroon = '', invoiceMacaroon = ''] = await Promise.all(
    ['admin', 'invoice'].map(async (name) => {
      const file = path.join(directory, `data/chain/bitcoin/regtest/${name}.macaroon`);
      return (await readFile(file)).toString('hex');
    }),
  );
  return { directory, rest, http, macaroon, invoiceMacaroon };
}

async function callNode({ http, macaroon }: Node, method: 'GET' | 'POST', route: string, body?: object): Promise<Json> {
  const headers = { 'grpc-metadata-macaroon': macaroon };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const { status, text } = await http.send({ method, path: route, headers, ...sent });
  if (status !== 200) throw new Error(`LND rejected ${route}: ${text}`);
  return JSON.parse(text) as Json;
}

async function waitUntilSynced(node: Node): Promise<Json> {
  await waitUntil(
    () => callNode(node, 'GET', '/v1/state'),
    ({ state }) => state === 'SERVER_ACTIVE',
  );
  return waitUntil(
    () => callNode(node, 'GET', '/v1/getinfo'),
    ({ synced_to_chain }) => synced_to_chain === true,
  );
}

async function mine(btcd: BackendHttp, blocks: number): Promise<void> {
  const authorization = `Basic ${Buffer.from(`${RPC.user}:${RPC.password}`).toString('base64')}`;
  const body = JSON.stringify({ jsonrpc: '1.0', id: 1, method: 'generate', params: [blocks] });
  const { status, text } = await btcd.send({ method: 'POST', path: '/', headers: { authorization }, body });
  if (status !== 200) throw new Error(`btcd rejected the request to mine: ${text}`);
}

async function waitUntil(poll: () => Promise<Json>, isExpected: (result: Json) => boolean): Promise<Json> {
  const deadline = performance.now() + READY_WITHIN_MS;
  for (;;) {
    const result = await poll().catch((error: Error): Json => ({ error: error.message }));
    if (isExpected(result)) return result;
    if (performance.now() > deadline) throw new Error(`LND did not become ready in time: ${JSON.stringify(result)}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}
