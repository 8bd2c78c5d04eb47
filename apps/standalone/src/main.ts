import '#foundation/node-version';
import 'reflect-metadata';
import { PaymentMethods } from '#application';
import { runProcess } from '#foundation';
import { ProcessRole, reportUnknownSettings, SETTINGS_READER } from '#modules';
import { openGateway } from '../../gateway/src/gateway.ts';
import { ProjectorModule } from '../../projector/src/projector.module.ts';
import { SagasModule } from '../../sagas/src/sagas.module.ts';
import { startSandbox } from '../../sandbox/src/sandbox.ts';
import { formatWelcome } from './welcome.ts';

/**
 * Runs all roles in one process with one event store, and the sandbox if it simulates anything. `npm start` runs this
 * file.
 */
await runProcess(
  'standalone',
  (env) => SETTINGS_READER.read(env),
  async (firstSettings, log, resources) => {
    reportUnknownSettings(process.env, firstSettings, log);
    const { sandboxPort, simulation } = firstSettings;
    const sandbox = simulation.usesSandbox ? await startSandbox({ port: sandboxPort, log }) : undefined;
    resources.defer(async () => sandbox?.close());
    // With SANDBOX_PORT=0 the URLs of providers and backends depend on the port that the sandbox has received.
    const env = sandbox ? { ...process.env, SANDBOX_PORT: new URL(sandbox.url).port } : process.env;
    const settings = SETTINGS_READER.read(env);
    const role = new ProcessRole('standalone', settings, log, resources);
    role.watchSecrets(env, SETTINGS_READER);
    const { app, api } = await openGateway(role, ProjectorModule, SagasModule);
    const { availableMethods } = app.get(PaymentMethods, { strict: false });
    const paymentMethods = availableMethods.map(({ method }) => method);
    const urls = { api, ...(sandbox ? { sandbox: sandbox.url } : {}) };
    process.stderr.write(formatWelcome({ ...urls, ...settings, paymentMethods }));
    return urls;
  },
);
