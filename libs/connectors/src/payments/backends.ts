import { PaymentBackendRegistry } from '#application';
import type { PaymentMethod, PaymentTerms } from '#domain';
import type { BackendKind } from './backend-kind.ts';
import { type BtcPaySettings, btcpay } from './btcpay/index.ts';
import { type ClnSettings, cln } from './cln/index.ts';
import { type LndSettings, lnd } from './lnd/index.ts';
import { type MoneroSettings, monero } from './monero/index.ts';
import { type NwcReceiveSettings, nwc } from './nwc/index.ts';
import { type PhoenixdSettings, phoenixd } from './phoenixd/index.ts';
import { type StripeSettings, stripe } from './stripe/index.ts';

/** Every kind of back end that takes payments. */
export const BACKEND_KINDS = [lnd, btcpay, cln, phoenixd, nwc, monero, stripe] as const;

export interface PaymentSettings
  extends LndSettings,
    BtcPaySettings,
    ClnSettings,
    PhoenixdSettings,
    NwcReceiveSettings,
    MoneroSettings,
    StripeSettings {
  /** Back ends by method, where another is wanted than the first that is configured. */
  readonly topupBackends: Readonly<Record<string, string>>;
  /** Confirmations by method, where others are wanted than `payments.json` has. */
  readonly topupConfirmations: Readonly<Record<string, string>>;
}

/**
 * Opens the back ends that are configured.
 * @param terms in which every back end can take the methods that name it
 * @throws Error that says what is wrong with the settings or the data
 */
export function createPaymentBackends(settings: PaymentSettings, terms: PaymentTerms): PaymentBackendRegistry {
  const { topupBackends } = settings;
  for (const method of terms.methods) for (const name of method.backends) assertAccepts(name, method, terms);
  for (const [name, backend] of Object.entries(topupBackends)) {
    const method = terms.methods.find((paymentMethod) => paymentMethod.method === name);
    if (!method) throw new Error(`TOPUP_BACKENDS names the method "${name}", which is not there`);
    assertAccepts(backend, method, terms);
  }
  const configuredBackends = BACKEND_KINDS.map((kind) => kind.open(settings, terms)).filter(
    (backend) => backend !== undefined,
  );
  const missing = Object.values(topupBackends).find(
    (name) => !configuredBackends.some((backend) => backend.name === name),
  );
  if (missing !== undefined) throw new Error(`TOPUP_BACKENDS names "${missing}", which is not configured`);
  const backends = new PaymentBackendRegistry(configuredBackends, topupBackends);
  for (const method of terms.methods) assertConfirmationsSupported(backends.findForMethod(method)?.name, method, terms);
  return backends;
}

/** What a chain has not confirmed can be replaced by anybody who pays, so it never counts. */
function assertConfirmationsSupported(
  name: string | undefined,
  { method, coin: code, destination, confirmations }: PaymentMethod,
  { coins }: PaymentTerms,
): void {
  const requirement = `payments.json or TOPUP_CONFIRMATIONS asks for ${confirmations} confirmations of ${method}`;
  if (destination === 'address' && confirmations < 1) throw new Error(`${requirement}, and it takes at least one`);
  const kind: Pick<BackendKind<PaymentSettings>, 'getMaxConfirmations'> | undefined = BACKEND_KINDS.find(
    (backendKind) => backendKind.name === name,
  );
  const coin = coins.find((coinTerms) => coinTerms.code === code);
  const maxConfirmations = coin && kind?.getMaxConfirmations?.(coin);
  if (maxConfirmations !== undefined && confirmations > maxConfirmations)
    throw new Error(`${requirement}, and ${name} waits for ${maxConfirmations} at most`);
}

function assertAccepts(
  name: string,
  { method, coin: code, destination }: PaymentMethod,
  { coins }: PaymentTerms,
): void {
  const kind = BACKEND_KINDS.find((backendKind) => backendKind.name === name);
  const coin = coins.find((coinTerms) => coinTerms.code === code);
  if (!kind) throw new Error(`the payment method ${method} names the back end "${name}", which is not there`);
  if (!coin || !kind.accepts(coin, destination)) throw new Error(`the back end ${name} cannot take ${method}`);
}
