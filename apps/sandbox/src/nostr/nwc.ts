/** Nostr Wallet Connect in the sandbox: a relay, and wallets that are made over HTTP. Loaded when first used. */
import type { Server } from 'node:http';
import type { LightningNode } from '../lightning/node.ts';
import { type Call, parseObject, Refusal, type Routes } from '../router.ts';
import type { NostrRelayServer } from './relay.ts';
import type { NwcWallet, WalletMode, WalletOptions } from './wallets.ts';

export const RELAY_PATH = '/relay';
const MAX_DELAY_MS = 3_600_000;

interface Loaded {
  readonly relay: NostrRelayServer;
  readonly Wallet: typeof NwcWallet;
  readonly modes: Readonly<Record<string, string>>;
}

export class NostrWalletConnect {
  private readonly wallets = new Map<string, NwcWallet>();
  private readonly node: LightningNode;
  private loading: Promise<Loaded> | undefined;
  private url = '';

  constructor(node: LightningNode) {
    this.node = node;
  }

  /** @param url where the server is reached: http:// */
  attach(server: Server, url: string): void {
    this.url = url.replace(/^http/, 'ws') + RELAY_PATH;
    server.on('upgrade', (request, socket, head) => {
      if (request.url?.replace(/\/$/, '') !== RELAY_PATH) return void socket.destroy(); // clients add a slash
      void this.loaded().then(({ relay }) => relay.accept(request, socket, head));
    });
  }

  routes(): Routes {
    return {
      'POST /nwc/wallets': async (call) => {
        const { relay, Wallet, modes } = await this.loaded();
        const wallet = new Wallet({ relay, relayUrl: this.url, node: this.node }, await optionsIn(call, modes));
        this.wallets.set(wallet.clientPubkey, wallet);
        await wallet.open();
        call.json(201, { id: wallet.id, nwc_url: wallet.url, modes });
      },
      'GET /nwc/wallets/:id': (call) => call.json(200, shown(this.wallet(call))),
      'PUT /nwc/wallets/:id': async (call) => {
        const { modes } = await this.loaded();
        const wallet = this.wallet(call);
        wallet.options = await optionsIn(call, modes);
        call.json(200, shown(wallet));
      },
    };
  }

  async close(): Promise<void> {
    for (const wallet of this.wallets.values()) wallet.close();
    await (await this.loading)?.relay.close();
  }

  private wallet({ parameter }: Call): NwcWallet {
    const wallet = [...this.wallets.values()].find(({ id }) => id === parameter);
    if (!wallet) throw new Refusal(404, { error: 'there is no such wallet' });
    return wallet;
  }

  private loaded(): Promise<Loaded> {
    this.loading ??= this.load();
    return this.loading;
  }

  private async load(): Promise<Loaded> {
    const [{ NostrRelayServer: Relay }, { MODES, NwcWallet }] = await Promise.all([
      import('./relay.ts'),
      import('./wallets.ts'),
    ]);
    const passage = (event: { readonly pubkey: string; readonly id: string }) =>
      this.wallets.get(event.pubkey)?.passage(event as never) ?? 'passes';
    return { relay: new Relay({ passage }), Wallet: NwcWallet, modes: MODES };
  }
}

async function optionsIn(call: Call, modes: Readonly<Record<string, string>>): Promise<WalletOptions> {
  const text = await call.text();
  const body = text === '' ? {} : parseObject(text);
  if (!body) throw failure('the body must be a JSON object');
  const { mode = 'pays', delay_ms = 0, encryption = 'nip44_v2', ...unknown } = body;
  for (const name in unknown) throw failure(`there is no option "${name}"`);
  if (typeof mode !== 'string' || !Object.hasOwn(modes, mode))
    throw failure(`"mode" must be one of ${Object.keys(modes).join('; ')}`);
  if (encryption !== 'nip44_v2' && encryption !== 'nip04') throw failure('"encryption" must be nip44_v2 or nip04');
  const isDelay = Number.isInteger(delay_ms) && Number(delay_ms) >= 0 && Number(delay_ms) <= MAX_DELAY_MS;
  if (!isDelay) throw failure(`"delay_ms" must be a whole number from 0 to ${MAX_DELAY_MS}`);
  return { mode: mode as WalletMode, delayMs: Number(delay_ms), encryption };
}

function shown({ id, url, options, payments, asked }: NwcWallet) {
  return {
    ...{ id, nwc_url: url, mode: options.mode, delay_ms: options.delayMs, encryption: options.encryption },
    requests: [...asked.values()].reduce((sum, each) => sum + each, 0),
    invoices: asked.size,
    payments,
  };
}

function failure(error: string): Refusal {
  return new Refusal(400, { error });
}
