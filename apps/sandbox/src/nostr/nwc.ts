/**
 * Nostr Wallet Connect in the sandbox: a relay, and wallets that are created over HTTP. Their modules are loaded on
 * first use.
 */
import type { Server } from 'node:http';
import type { LightningNode } from '../lightning/node.ts';
import { type Call, HttpError, parseObject, type Routes } from '../router.ts';
import type { NostrRelayServer } from './relay.ts';
import type { NwcWallet, WalletMode, WalletOptions } from './wallets.ts';

export const RELAY_PATH = '/relay';
const MAX_DELAY_MS = 3_600_000;

interface NostrModules {
  readonly relay: NostrRelayServer;
  readonly Wallet: typeof NwcWallet;
  readonly modes: Readonly<Record<string, string>>;
}

export class NostrWalletConnect {
  private readonly wallets = new Map<string, NwcWallet>();
  private readonly node: LightningNode;
  private loading: Promise<NostrModules> | undefined;
  private url = '';

  constructor(node: LightningNode) {
    this.node = node;
  }

  /** @param url http URL under which clients reach the server */
  attach(server: Server, url: string): void {
    this.url = url.replace(/^http/, 'ws') + RELAY_PATH;
    server.on('upgrade', (request, socket, head) => {
      if (request.url?.replace(/\/$/, '') !== RELAY_PATH) return void socket.destroy(); // clients add a slash
      void this.ensureLoaded().then(({ relay }) => relay.accept(request, socket, head));
    });
  }

  routes(): Routes {
    return {
      'POST /nwc/wallets': async (call) => {
        const { relay, Wallet, modes } = await this.ensureLoaded();
        const wallet = new Wallet({ relay, relayUrl: this.url, node: this.node }, await parseOptions(call, modes));
        this.wallets.set(wallet.clientPubkey, wallet);
        await wallet.open();
        call.sendJson(201, { id: wallet.id, nwc_url: wallet.url, modes });
      },
      'GET /nwc/wallets/:id': (call) => call.sendJson(200, toWalletJson(this.getWallet(call))),
      'PUT /nwc/wallets/:id': async (call) => {
        const { modes } = await this.ensureLoaded();
        const wallet = this.getWallet(call);
        wallet.options = await parseOptions(call, modes);
        call.sendJson(200, toWalletJson(wallet));
      },
    };
  }

  async close(): Promise<void> {
    for (const wallet of this.wallets.values()) wallet.close();
    await (await this.loading)?.relay.close();
  }

  private getWallet({ parameter }: Call): NwcWallet {
    const wallet = [...this.wallets.values()].find(({ id }) => id === parameter);
    if (!wallet) throw new HttpError(404, { error: 'wallet not found' });
    return wallet;
  }

  private ensureLoaded(): Promise<NostrModules> {
    this.loading ??= this.load();
    return this.loading;
  }

  private async load(): Promise<NostrModules> {
    const [{ NostrRelayServer: Relay }, { MODES, NwcWallet }] = await Promise.all([
      import('./relay.ts'),
      import('./wallets.ts'),
    ]);
    const decideDisposition = (event: { readonly pubkey: string; readonly id: string }) =>
      this.wallets.get(event.pubkey)?.decideDisposition(event as never) ?? 'passes';
    return { relay: new Relay({ decideDisposition }), Wallet: NwcWallet, modes: MODES };
  }
}

async function parseOptions(call: Call, modes: Readonly<Record<string, string>>): Promise<WalletOptions> {
  const text = await call.readText();
  const body = text === '' ? {} : parseObject(text);
  if (!body) throw badRequestError('the body must be a JSON object');
  const { mode = 'pays', delay_ms = 0, encryption = 'nip44_v2', ...unknown } = body;
  for (const name in unknown) throw badRequestError(`unknown option "${name}"`);
  if (typeof mode !== 'string' || !Object.hasOwn(modes, mode))
    throw badRequestError(`"mode" must be one of ${Object.keys(modes).join('; ')}`);
  if (encryption !== 'nip44_v2' && encryption !== 'nip04')
    throw badRequestError('"encryption" must be nip44_v2 or nip04');
  const isDelay = Number.isInteger(delay_ms) && Number(delay_ms) >= 0 && Number(delay_ms) <= MAX_DELAY_MS;
  if (!isDelay) throw badRequestError(`"delay_ms" must be an integer from 0 to ${MAX_DELAY_MS}`);
  return { mode: mode as WalletMode, delayMs: Number(delay_ms), encryption };
}

function toWalletJson({ id, url, options, payments, requestCounts }: NwcWallet) {
  return {
    id,
    nwc_url: url,
    mode: options.mode,
    delay_ms: options.delayMs,
    encryption: options.encryption,
    requests: [...requestCounts.values()].reduce((sum, count) => sum + count, 0),
    invoices: requestCounts.size,
    payments,
  };
}

function badRequestError(error: string): HttpError {
  return new HttpError(400, { error });
}
