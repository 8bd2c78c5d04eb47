/**
 * The simulated outside world: AI and data providers with one bill, enclaves, a Lightning node, the chains of coins,
 * BTCPay Server, Core Lightning, phoenixd, monero-wallet-rpc, Stripe, wallets, a Nostr relay and exchange rate sources.
 * The state of the sandbox is held in memory. Countinghouse calls the sandbox like real services, at configured URLs.
 */
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Log, type RunningProcess, StartError } from '#foundation';
import { messagesRoutes } from './anthropic/messages.ts';
import { modelRoutes as anthropicModelRoutes } from './anthropic/models.ts';
import { billRoutes, SandboxBill } from './bill.ts';
import { FakeBtcPayServer } from './btcpay/greenfield.ts';
import { Chains } from './chains/chain.ts';
import { chainRoutes } from './chains/wallet.ts';
import { clnRoutes } from './cln/clnrest.ts';
import { DataVendors } from './data/data-vendors.ts';
import { DATA_VENDORS } from './data/vendors.ts';
import { enclaveRoutes } from './enclave/enclave.ts';
import { GoogleServer } from './google/google.ts';
import { lndRoutes } from './lightning/lnd-rest.ts';
import { LightningNode } from './lightning/node.ts';
import { walletRoutes } from './lightning/wallet.ts';
import { listenRoutes } from './media/deepgram/listen.ts';
import { speakRoutes } from './media/deepgram/speak.ts';
import { textToSpeechRoutes } from './media/elevenlabs/text-to-speech.ts';
import { voicesRoutes } from './media/elevenlabs/voices.ts';
import { FalServer } from './media/fal/queue.ts';
import { moneroRoutes } from './monero/wallet-rpc.ts';
import { NostrWalletConnect } from './nostr/nwc.ts';
import { speechRoutes } from './openai/audio/speech.ts';
import { transcriptionRoutes } from './openai/audio/transcriptions.ts';
import { chatRoutes } from './openai/chat.ts';
import { embeddingRoutes } from './openai/embeddings/embeddings.ts';
import { withErrorFormat } from './openai/errors.ts';
import { deepInfraImageRoutes } from './openai/images/deepinfra-images.ts';
import { imageRoutes } from './openai/images/images.ts';
import { modelRoutes } from './openai/model-list.ts';
import { ENCLAVE_PROVIDERS, OPENAI_PROVIDER, PROVIDERS } from './openai/models.ts';
import { responsesRoutes } from './openai/responses/responses.ts';
import { PhoenixdPeer } from './phoenixd/phoenixd.ts';
import { keyCheckRoutes } from './provider/key-checks.ts';
import { rateRoutes } from './rates.ts';
import { createListener, type Routes } from './router.ts';
import { StripeServer } from './stripe/rest.ts';

/** Longer than the idle timeout of clients, so that no connection is closed while a request arrives. */
const KEEP_ALIVE_MS = 75_000;

export interface SandboxOptions {
  /** 0 selects a free port. */
  readonly port: number;
  /** Address to listen on. Only a container needs another address than loopback. */
  readonly host?: string;
  readonly log?: Log;
  /** The URL under which others reach the sandbox, if it is not the listen address. */
  readonly publicUrl?: string | undefined;
  /** Called with each request before it is served. Tests record requests and responses with it. */
  readonly onRequest?: RequestListener;
}

/** @throws StartError if the port is in use */
export async function startSandbox({
  port,
  host = '127.0.0.1',
  log,
  publicUrl,
  onRequest,
}: SandboxOptions): Promise<RunningProcess & { readonly url: string }> {
  const { routes, nwc, close } = createWorld();
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS });
  if (onRequest) server.on('request', onRequest);
  server.on('request', createListener(routes, log));
  await listen(server, port, host);
  const url = `http://${host}:${(server.address() as AddressInfo).port}`;
  nwc.attach(server, publicUrl ?? url);
  return {
    url,
    readyFields: { url },
    async close() {
      await close();
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

interface World {
  readonly routes: Routes;
  readonly nwc: NostrWalletConnect;
  close(): Promise<void>;
}

function createWorld(): World {
  const bill = new SandboxBill();
  const node = new LightningNode();
  const chains = new Chains();
  const btcpay = new FakeBtcPayServer(chains, node);
  const stripe = new StripeServer();
  const phoenixd = new PhoenixdPeer(node);
  const nwc = new NostrWalletConnect(node);
  const fal = new FalServer(bill);
  const google = new GoogleServer(bill);
  const routes: Routes = {
    ...Object.assign(
      {},
      ...PROVIDERS.map((provider) =>
        withErrorFormat(provider.name, {
          ...chatRoutes(provider, bill),
          ...embeddingRoutes(provider, bill),
          ...modelRoutes(provider),
        }),
      ),
    ),
    ...Object.assign({}, ...ENCLAVE_PROVIDERS.map((provider) => enclaveRoutes(provider, bill))),
    ...keyCheckRoutes(),
    ...responsesRoutes(OPENAI_PROVIDER, bill),
    ...messagesRoutes(bill),
    ...anthropicModelRoutes(),
    ...imageRoutes(bill),
    ...deepInfraImageRoutes(bill),
    ...speechRoutes(bill),
    ...transcriptionRoutes(bill),
    ...fal.routes(),
    ...google.routes(),
    ...textToSpeechRoutes(bill),
    ...voicesRoutes(),
    ...listenRoutes(bill),
    ...speakRoutes(bill),
    ...new DataVendors(bill, DATA_VENDORS).routes(),
    ...billRoutes(bill),
    ...lndRoutes(node),
    ...walletRoutes(node),
    ...chainRoutes(chains),
    ...btcpay.routes(),
    ...stripe.routes(),
    ...clnRoutes(node),
    ...phoenixd.routes(),
    ...moneroRoutes(chains.getChain('XMR')),
    ...nwc.routes(),
    ...rateRoutes(),
  };
  const index = { name: 'Countinghouse sandbox', simulated: true, routes: Object.keys(routes) };
  return {
    routes: { ...routes, 'GET /': (call) => call.sendJson(200, index) },
    nwc,
    close: async () => {
      for (const service of [btcpay, stripe, phoenixd, nwc, fal, google]) await service.close();
    },
  };
}

async function listen(server: Server, port: number, host: string): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    throw new StartError(`Port ${port} is already in use; stop the process that uses it, or set SANDBOX_PORT.`);
  }
}
