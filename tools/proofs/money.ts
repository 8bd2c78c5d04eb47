/**
 * `npm run prove:money [-- monero] [lightning]`: receives payments with real software on private test networks.
 * Monero's node (`monerod --regtest`) and wallet server come from Debian's package, LND and btcd from their Go modules.
 * On each network, the contract of payment backends runs first. Then the proof makes payments, such as exact, too low,
 * too high, late, never confirmed, or reversed by a reorganisation. It also pays while the wallet server or the sagas
 * are down. Each invoice ends with the expected status, and its account with the expected balance. The ledger verifies
 * with a drift of 0.
 */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ProofCluster } from '../cluster.ts';
import { root } from '../processes.ts';
import { runCommand } from './clients/run.ts';
import { LightningNetwork } from './money/lightning.ts';
import { proveLightning } from './money/lightning-proof.ts';
import { MoneroNetwork } from './money/monero.ts';
import { proveMonero } from './money/monero-proof.ts';
import { Shop } from './money/shop.ts';

const CONTRACT_WITHIN_MS = 300_000;
const SHORT_EXPIRY_METHODS = ['xmr', 'btc-lightning'];

const print = (line: string) => void process.stdout.write(`${line}\n`);

/** A payment network that runs on this host. */
interface Network {
  readonly settings: Record<string, string>;
  readonly testSettings: Record<string, string>;
  /** Returns the received amount, as the software of the network reports it, in piconero or satoshis. */
  getReceivedAmount(): Promise<bigint>;
}

/**
 * Copies the catalogue and adds variants of some methods. The invoices of a variant expire after a minute.
 * @returns the directory
 */
async function prepareCatalogue(directory: string): Promise<string> {
  await cp(path.join(root, 'libs/catalogue/data'), directory, { recursive: true });
  const file = path.join(directory, 'payments.json');
  const terms = JSON.parse(await readFile(file, 'utf8')) as { methods: { method: string; expiryMinutes: number }[] };
  const shortLived = terms.methods.filter(({ method }) => SHORT_EXPIRY_METHODS.includes(method));
  terms.methods.push(...shortLived.map((entry) => ({ ...entry, method: `${entry.method}-quick`, expiryMinutes: 1 })));
  await writeFile(file, JSON.stringify(terms));
  return directory;
}

async function proveContract(backEnd: string, { testSettings }: Network): Promise<boolean> {
  const suite = `libs/connectors/src/payments/${backEnd}/contract.int.spec.ts`;
  const command = [process.execPath, path.join(root, 'node_modules/jest/bin/jest.js'), suite, '--maxWorkers=1'];
  const env = { ...(process.env as Record<string, string>), ...testSettings };
  const { code, output } = await runCommand(command, { cwd: root, env, timeoutMs: CONTRACT_WITHIN_MS });
  print(`the contract of payment backends: ${output.trim().split('\n').at(-1) ?? ''}`);
  if (code !== 0) print(output);
  return code === 0;
}

interface NetworkProof<N extends Network> {
  readonly backEnd: string;
  start(directory: string, resources: AsyncDisposableStack): Promise<N>;
  prove(shop: Shop, network: N): Promise<void>;
}

async function proveOn<N extends Network>({ backEnd, start, prove }: NetworkProof<N>): Promise<boolean> {
  print(`\n${backEnd}`);
  const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-money-'));
  await using resources = new AsyncDisposableStack();
  resources.defer(() => rm(directory, { recursive: true, force: true }));
  const network = await start(path.join(directory, 'network'), resources);
  const contractPasses = await proveContract(backEnd, network);
  const settings = { ...network.settings, CATALOGUE_DIR: await prepareCatalogue(path.join(directory, 'catalogue')) };
  const cluster = await ProofCluster.start(path.join(directory, 'data'), 1, settings);
  resources.defer(() => cluster.stop());
  const before = await network.getReceivedAmount();
  const shop = new Shop(cluster, print);
  await prove(shop, network);
  const { output: wallets } = await cluster.runLedger('wallets');
  const [, held = ''] = /^should hold .* (\S+)$/m.exec(wallets.replaceAll(/ +$/gm, '')) ?? [];
  const received = String((await network.getReceivedAmount()) - before);
  shop.report(
    'the amount that the wallet itself reports as received',
    held === received,
    received,
    `${held} as in the ledger`,
  );
  const { code, output } = await cluster.runLedger('verify');
  print(output.trim().split('\n').at(-1) ?? '');
  return contractPasses && shop.hasPassed && code === 0;
}

const NETWORKS: Readonly<Record<string, () => Promise<boolean>>> = {
  monero: () => proveOn({ backEnd: 'monero', start: (...at) => MoneroNetwork.start(...at), prove: proveMonero }),
  lightning: () => proveOn({ backEnd: 'lnd', start: (...at) => LightningNetwork.start(...at), prove: proveLightning }),
};

const requestedNetworks = process.argv.slice(2);
for (const name of requestedNetworks.length > 0 ? requestedNetworks : Object.keys(NETWORKS)) {
  const prove = NETWORKS[name];
  if (!prove) throw new Error(`unknown network ${name}; known are ${Object.keys(NETWORKS).join(' and ')}`);
  if (!(await prove())) process.exitCode = 1;
}
