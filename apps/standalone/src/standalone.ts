import { PaymentMethods } from '#application';
import type { Log, Settings } from '#foundation';
import type { Environment } from '#foundation/program';
import { ProcessRole, reportUnknownSettings, SETTINGS_READER } from '#modules';
import { openGateway } from '../../gateway/src/gateway.ts';
import { ProjectorModule } from '../../projector/src/projector.module.ts';
import { SagasModule } from '../../sagas/src/sagas.module.ts';
import { loadSandbox } from '../../sandbox/src/load-sandbox.ts';
import { formatWelcome } from './welcome.ts';

export interface StandaloneProgram {
  /** URL of the API, and of the sandbox if it runs. */
  readonly urls: { readonly api: string; readonly sandbox?: string };
  /** The text for the operator. */
  readonly welcome: string;
}

/**
 * Starts all roles in this process with one event store, and the sandbox if it simulates anything.
 * @param env the environment of `firstSettings`
 * @throws StartError or SettingError with a sentence for the operator
 */
export async function startStandalone(
  env: Environment,
  firstSettings: Settings,
  log: Log,
  resources: AsyncDisposableStack,
): Promise<StandaloneProgram> {
  reportUnknownSettings(env, firstSettings, log);
  const { sandboxPort, simulation } = firstSettings;
  const sandbox = simulation.usesSandbox
    ? await (await loadSandbox()).startSandbox({ port: sandboxPort, log })
    : undefined;
  resources.defer(async () => sandbox?.close());
  // With SANDBOX_PORT=0 the URLs of providers and backends depend on the port that the sandbox has received.
  const resolvedEnv = sandbox ? { ...env, SANDBOX_PORT: new URL(sandbox.url).port } : env;
  const settings = SETTINGS_READER.read(resolvedEnv);
  const role = new ProcessRole('standalone', settings, log, resources);
  role.watchSecrets(resolvedEnv, SETTINGS_READER);
  const { app, api } = await openGateway(role, ProjectorModule, SagasModule);
  const { availableMethods } = app.get(PaymentMethods, { strict: false });
  const paymentMethods = availableMethods.map(({ method }) => method);
  const urls = { api, ...(sandbox ? { sandbox: sandbox.url } : {}) };
  return { urls, welcome: formatWelcome({ ...urls, ...settings, paymentMethods }) };
}
