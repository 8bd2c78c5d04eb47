import { monitorBackend, OperatorProblems, type PaymentBackend, PaymentBackendRegistry } from '#application';
import type { PaymentMethod, PaymentTerms } from '#domain';
import { nodeTimers } from '#runtime';
import type { BackendKind } from './backend-kind.ts';
import { type BtcPaySettings, btcpay } from './btcpay/index.ts';
import { type ClnSettings, cln } from './cln/index.ts';
import { type LndSettings, lnd } from './lnd/index.ts';
import { type MoneroSettings, monero } from './monero/index.ts';
import { type NwcReceiveSettings, nwc } from './nwc/index.ts';
import { type PhoenixdSettings, phoenixd } from './phoenixd/index.ts';
import { type StripeSettings, stripe } from './stripe/index.ts';

/** All kinds of payment backends. */
export const BACKEND_KINDS = [lnd, btcpay, cln, phoenixd, nwc, monero, stripe] as const;

export interface PaymentSettings
  extends LndSettings,
    BtcPaySettings,
    ClnSettings,
    PhoenixdSettings,
    NwcReceiveSettings,
    MoneroSettings,
    StripeSettings {
  /** Payment backends by method. A method that is missing here uses its first configured backend. */
  readonly topupBackends: Readonly<Record<string, string>>;
  /** Confirmations by method, which replace those of `payments.json`. */
  readonly topupConfirmations: Readonly<Record<string, string>>;
}

/**
 * Creates the configured payment backends.
 * @param problems gets the payment backends that reject their credential
 * @throws Error for an unknown method or backend, a backend that does not support its method, a backend in
 * `TOPUP_BACKENDS` that is not configured, or an unsupported number of confirmations
 */
export function createPaymentBackends(
  settings: PaymentSettings,
  terms: PaymentTerms,
  problems = new OperatorProblems({ ...nodeTimers, reportError: () => {} }),
): PaymentBackendRegistry {
  const { topupBackends } = settings;
  for (const method of terms.methods) for (const name of method.backends) assertAccepts(name, method, terms);
  for (const [name, backend] of Object.entries(topupBackends)) {
    const method = terms.methods.find((paymentMethod) => paymentMethod.method === name);
    if (!method) throw new Error(`TOPUP_BACKENDS names the method "${name}", which does not exist`);
    assertAccepts(backend, method, terms);
  }
  const configuredBackends = BACKEND_KINDS.flatMap(({ name, credentialSetting, open }) => {
    const monitor = problems.createMonitor(name, `the payment backend ${name}`, credentialSetting);
    const backend = open(settings, terms);
    return backend ? [monitorBackend(backend, monitor)] : [];
  });
  const missing = Object.values(topupBackends).find(
    (name) => !configuredBackends.some((backend) => backend.name === name),
  );
  if (missing !== undefined) throw new Error(`TOPUP_BACKENDS names "${missing}", which is not configured`);
  const backends = new PaymentBackendRegistry(configuredBackends, topupBackends);
  for (const method of terms.methods) assertConfirmationsSupported(backends.listForMethod(method), method, terms);
  return backends;
}

/** The sender of an unconfirmed payment on a chain can replace it, so at least one confirmation is required. */
function assertConfirmationsSupported(
  backends: readonly PaymentBackend[],
  { method, coin: code, destination, confirmations }: PaymentMethod,
  { coins }: PaymentTerms,
): void {
  const requirement = `payments.json or TOPUP_CONFIRMATIONS requires ${confirmations} confirmations of ${method}`;
  if (destination === 'address' && confirmations < 1) throw new Error(`${requirement}, but the minimum is 1`);
  const coin = coins.find((coinTerms) => coinTerms.code === code);
  for (const { name } of backends) {
    const kind: Pick<BackendKind<PaymentSettings>, 'getMaxConfirmations'> | undefined = BACKEND_KINDS.find(
      (backendKind) => backendKind.name === name,
    );
    const maxConfirmations = coin && kind?.getMaxConfirmations?.(coin);
    if (maxConfirmations !== undefined && confirmations > maxConfirmations)
      throw new Error(`${requirement}, but ${name} supports at most ${maxConfirmations}`);
  }
}

function assertAccepts(
  name: string,
  { method, coin: code, destination }: PaymentMethod,
  { coins }: PaymentTerms,
): void {
  const kind = BACKEND_KINDS.find((backendKind) => backendKind.name === name);
  const coin = coins.find((coinTerms) => coinTerms.code === code);
  if (!kind)
    throw new Error(`payments.json or TOPUP_BACKENDS names for ${method} the backend "${name}", which does not exist`);
  if (!coin || !kind.accepts(coin, destination)) throw new Error(`the backend ${name} does not support ${method}`);
}
