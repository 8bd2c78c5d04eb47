/**
 * Decides what the sandbox simulates. Without a real service it simulates all providers and payments. Otherwise it does
 * not run, and what is not set does not exist, unless ALLOW_SANDBOX lets it simulate payments.
 */
import { hasPaymentBackend, PAYMENT_BACKEND_VARIABLES, SANDBOX_STRIPE_KEY } from './external-service-settings.ts';
import { isPublic, namesSandbox, readHost } from './hosts.ts';
import { findConfiguringVariable, isConfigured, type ProviderSettingsSpec } from './provider-settings.ts';
import { type Environment, readVariable } from './setting-types.ts';

export interface Simulation {
  /** Whether the sandbox runs, and its addresses are the defaults of settings. */
  readonly usesSandbox: boolean;
  /** Whether it simulates all providers. */
  readonly providers: boolean;
  /** Whether it simulates payments. */
  readonly payments: boolean;
}

export function decideSimulation(env: Environment, providers: readonly ProviderSettingsSpec[]): Simulation {
  const usesSandbox = isSandboxAllowed(env) || findRealSetting(env, providers) === undefined;
  return {
    usesSandbox,
    providers: usesSandbox && !providers.some((provider) => isConfigured(env, provider)),
    payments: usesSandbox && !hasPaymentBackend(env),
  };
}

/** Returns a setting that shows that real services, money or clients are involved; undefined if there is none. */
export function findRealSetting(env: Environment, providers: readonly ProviderSettingsSpec[]): string | undefined {
  const isReal = (variable: string) => {
    const value = readVariable(env, variable);
    return value !== undefined && value !== SANDBOX_STRIPE_KEY && !namesSandbox(env, variable);
  };
  const publicHost = readHost(env, 'PUBLIC_BASE_URL');
  return (
    providers.map((provider) => findConfiguringVariable(env, provider)).find((variable) => variable !== undefined) ??
    PAYMENT_BACKEND_VARIABLES.find(isReal) ??
    (publicHost !== undefined && isPublic(publicHost) ? 'PUBLIC_BASE_URL' : undefined)
  );
}

export function isSandboxAllowed(env: Environment): boolean {
  return readVariable(env, 'ALLOW_SANDBOX') === 'true';
}
