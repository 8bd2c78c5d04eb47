/**
 * A Lightning network of two real nodes (LND on btcd's regtest), the shop's and a customer's, with a channel in which the
 * customer can pay. All on loopback.
 */
import { mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { BackendHttp } from '../../../libs/connectors/src/payments/backend-http.ts';
import { type Started, start } from '../../processes.ts';
import { build, type Programs } from './go.ts';
import { freePorts } from './ports.ts';

const LND: Programs = {
  name: 'lnd',
  modules: {
    'github.com/lightningnetwork/lnd': 'v0.18.5-beta',
    'github.com/btcsuite/btcd': 'v0.24.3-0.20240921052913-67b8efd3ba53',
  },
  programs: ['github.com/lightningnetwork/lnd/cmd/lnd', 'github.com/btcsuite/btcd'],
  replaced: {
    'google.golang.org/protobuf': 'github.com/lightninglabs/protobuf-go-hex-display v1.30.0-hex-display',
    'github.com/gogo/protobuf': 'github.com/gogo/protobuf v1.3.2',
    'github.com/ulikunitz/xz': 'github.com/ulikunitz/xz v0.5.11',
  },
};

/** Coinbase rewards can be spent after 100 blocks, and segregated witness counts after some 430. */
const FIRST_BLOCKS = 450;
const CHANNEL_SATS = 10_000_000;
const CHANNEL_BLOCKS = 6;
const READY_WITHIN_MS = 60_000;
const LOOK_AGAIN_MS = 200;
const RPC = { user: 'proof', password: 'proof' };

type Json = Readonly<Record<string, unknown>>;

/** A node and how it is asked. */
interface Node {
  readonly directory: string;
  readonly rest: number;
  readonly http: BackendHttp;
  /** For everything, and for what the program needs: to make invoices and to read them. */
  readonly macaroon: string;
  readonly invoiceMacaroon: string;
}

export class LightningNetwork {
  private constructor(
    private readonly startShop: () => Promise<Started>,
    private readonly shop: Node,
    private readonly customer: Node,
    private running: Started,
  ) {}

  /**
   * @param directory for chain and nodes
   * @param ended what is started, so that it ends however this does
   */
  static async start(directory: string, ended: AsyncDisposableStack): Promise<LightningNetwork> {
    const bin = await build(LND);
    const ports = await freePorts('btcd', 'rpc', 'shop', 'shopRest', 'customer', 'customerRest', 'grpc', 'grpc2');
    const at = (name: string) => path.join(directory, name);
    await mkdir(directory, { recursive: true });
    const keep = async (command: readonly string[], ready: RegExp): Promise<Started> => {
      const started = await start([...command], {}, ready);
      ended.defer(() => started.stop());
      return started;
    };
    const btcd = (...more: string[]) =>
      keep([path.join(bin, 'btcd'), ...btcdOptions(directory, ports), ...more], /RPC server listening/);
    const lnd = (name: 'shop' | 'customer') => {
      const grpc = name === 'shop' ? ports.grpc : ports.grpc2;
      const own = ['--lnddir', at(name), `--listen=127.0.0.1:${ports[name]}`, `--rpclisten=127.0.0.1:${grpc}`];
      const options = [...lndOptions(directory, ports.rpc), ...own, `--restlisten=127.0.0.1:${ports[`${name}Rest`]}`];
      return keep([path.join(bin, 'lnd'), ...options], /Waiting for chain backend/);
    };
    const nodeOf = async (name: 'shop' | 'customer') => {
      const node = await nodeIn(at(name), ports[`${name}Rest`]);
      ended.defer(() => node.http.close());
      return node;
    };
    // Who is to be paid for blocks is known only when there is a wallet, which needs a chain.
    const first = await btcd();
    await lnd('customer');
    const customer = await nodeOf('customer');
    const { address } = await asked(customer, 'GET', '/v1/newaddress');
    await first.stop();
    await btcd(`--miningaddr=${address}`);
    const mining = new BackendHttp('btcd', `https://127.0.0.1:${ports.rpc}`, { certificate: at('rpc.cert') });
    ended.defer(() => mining.close());
    await mine(mining, FIRST_BLOCKS);
    const running = await lnd('shop');
    const network = new LightningNetwork(() => lnd('shop'), await nodeOf('shop'), customer, running);
    await network.openChannel(`127.0.0.1:${ports.shop}`, () => mine(mining, CHANNEL_BLOCKS));
    return network;
  }

  /** How the program reaches the shop's node. */
  get settings(): Record<string, string> {
    const { rest, invoiceMacaroon, directory } = this.shop;
    return {
      LND_REST_URL: `https://127.0.0.1:${rest}`,
      LND_MACAROON: invoiceMacaroon,
      LND_TLS_CERT: path.join(directory, 'tls.cert'),
    };
  }

  /** How a contract's suite reaches both. */
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

  /** Satoshis that the customer has paid to the shop. */
  async received(): Promise<bigint> {
    const { channels } = await asked(this.customer, 'GET', '/v1/channels');
    const sent = (channels as readonly { total_satoshis_sent: string }[]).map((each) =>
      BigInt(each.total_satoshis_sent),
    );
    return sent.reduce((all, each) => all + each, 0n);
  }

  /** @returns why it was not paid; empty when it was */
  async pay(payment_request: string): Promise<string> {
    const sent = { payment_request, fee_limit: { fixed: '10' } };
    return String((await asked(this.customer, 'POST', '/v1/channels/transactions', sent)).payment_error);
  }

  /** Pays another amount than the invoice asks for. */
  async payInstead(payment_request: string, amt_msat: string): Promise<string> {
    const invoice = await asked(this.customer, 'GET', `/v1/payreq/${payment_request}`);
    const { destination: dest_string, payment_hash: payment_hash_string, payment_addr, cltv_expiry } = invoice;
    const sent = { dest_string, payment_hash_string, payment_addr, final_cltv_delta: Number(cltv_expiry), amt_msat };
    return String((await asked(this.customer, 'POST', '/v1/channels/transactions', sent)).payment_error);
  }

  async killShop(): Promise<void> {
    await this.running.kill();
  }

  async restartShop(): Promise<void> {
    this.running = await this.startShop();
    await this.untilChannelWorks();
  }

  private async openChannel(host: string, mineBlocks: () => Promise<void>): Promise<void> {
    const { identity_pubkey: pubkey } = await synced(this.shop);
    await synced(this.customer);
    await asked(this.customer, 'POST', '/v1/peers', { addr: { pubkey, host }, perm: true });
    await until(
      () => asked(this.customer, 'GET', '/v1/peers'),
      ({ peers }) => Array.isArray(peers) && peers.length > 0,
    );
    const channel = { node_pubkey_string: pubkey, local_funding_amount: String(CHANNEL_SATS), sat_per_vbyte: '5' };
    await asked(this.customer, 'POST', '/v1/channels', channel);
    await mineBlocks();
    await this.untilChannelWorks();
  }

  private async untilChannelWorks(): Promise<void> {
    for (const node of [this.shop, this.customer]) {
      await until(
        () => asked(node, 'GET', '/v1/channels'),
        ({ channels }) => (channels as { active?: boolean }[] | undefined)?.[0]?.active === true,
      );
    }
    const { identity_pubkey: to } = await asked(this.shop, 'GET', '/v1/getinfo');
    await until(
      () => asked(this.customer, 'GET', `/v1/graph/routes/${to}/1000`),
      ({ routes }) => Array.isArray(routes) && routes.length > 0,
    );
  }
}

function btcdOptions(
  directory: string,
  { btcd, rpc }: { readonly btcd: number; readonly rpc: number },
): readonly string[] {
  const at = (name: string) => path.join(directory, name);
  return [
    ...['--regtest', '--configfile=/dev/null', `--datadir=${at('btcd')}`, `--logdir=${at('btcd-logs')}`, '--nodnsseed'],
    ...[`--listen=127.0.0.1:${btcd}`, `--rpclisten=127.0.0.1:${rpc}`, '--nostalldetect', '--txindex'],
    ...[`--rpcuser=${RPC.user}`, `--rpcpass=${RPC.password}`],
    ...[`--rpccert=${at('rpc.cert')}`, `--rpckey=${at('rpc.key')}`],
  ];
}

function lndOptions(directory: string, rpc: number): readonly string[] {
  return [
    ...['--configfile=/dev/null', '--bitcoin.active', '--bitcoin.regtest', '--bitcoin.node=btcd', '--noseedbackup'],
    ...[`--btcd.rpchost=127.0.0.1:${rpc}`, `--btcd.rpccert=${path.join(directory, 'rpc.cert')}`],
    ...[`--btcd.rpcuser=${RPC.user}`, `--btcd.rpcpass=${RPC.password}`, '--nobootstrap', '--trickledelay=50'],
  ];
}

async function nodeIn(directory: string, rest: number): Promise<Node> {
  const http = new BackendHttp('LND', `https://127.0.0.1:${rest}`, { certificate: path.join(directory, 'tls.cert') });
  const [macaroon = '', invoiceMacaroon = ''] = await Promise.all(
    ['admin', 'invoice'].map(async (name) => {
      const file = path.join(directory, `data/chain/bitcoin/regtest/${name}.macaroon`);
      return (await readFile(file)).toString('hex');
    }),
  );
  return { directory, rest, http, macaroon, invoiceMacaroon };
}

async function asked({ http, macaroon }: Node, method: 'GET' | 'POST', route: string, body?: object): Promise<Json> {
  const headers = { 'grpc-metadata-macaroon': macaroon };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const { status, text } = await http.send({ method, path: route, headers, ...sent });
  if (status !== 200) throw new Error(`LND refused ${route}: ${text}`);
  return JSON.parse(text) as Json;
}

async function synced(node: Node): Promise<Json> {
  await until(
    () => asked(node, 'GET', '/v1/state'),
    ({ state }) => state === 'SERVER_ACTIVE',
  );
  return until(
    () => asked(node, 'GET', '/v1/getinfo'),
    ({ synced_to_chain }) => synced_to_chain === true,
  );
}

async function mine(btcd: BackendHttp, blocks: number): Promise<void> {
  const authorization = `Basic ${Buffer.from(`${RPC.user}:${RPC.password}`).toString('base64')}`;
  const body = JSON.stringify({ jsonrpc: '1.0', id: 1, method: 'generate', params: [blocks] });
  const { status, text } = await btcd.send({ method: 'POST', path: '/', headers: { authorization }, body });
  if (status !== 200) throw new Error(`btcd refused to mine: ${text}`);
}

async function until(look: () => Promise<Json>, is: (found: Json) => boolean): Promise<Json> {
  const deadline = performance.now() + READY_WITHIN_MS;
  for (;;) {
    const found = await look().catch((error: Error): Json => ({ error: error.message }));
    if (is(found)) return found;
    if (performance.now() > deadline) throw new Error(`LND is not ready in time: ${JSON.stringify(found)}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}
