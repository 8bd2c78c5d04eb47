import 'reflect-metadata';
import { readProviders } from '#catalogue';
import { listUnsafeSettings, readSettings, runProcess } from '#foundation';
import { ProcessRole, reportUnknownSettings } from '#modules';
import { openGateway } from '../../gateway/src/gateway.ts';
import { ProjectorModule } from '../../projector/src/projector.module.ts';
import { SagasModule } from '../../sagas/src/sagas.module.ts';
import { startSandbox } from '../../sandbox/src/sandbox.ts';
import { formatWelcome } from './welcome.ts';

const readStandaloneSettings = (env: NodeJS.ProcessEnv) => readSettings(env, readProviders, listUnsafeSettings);

/** Runs all roles and the sandbox in one process with one event store. `npm start` runs this file. */
await runProcess('standalone', readStandaloneSettings, async (settings, log, resources) => {
  reportUnknownSettings(process.env, settings, log);
  const sandbox = await startSandbox({ port: settings.sandboxPort, log });
  resources.defer(() => sandbox.close());
  // With SANDBOX_PORT=0 the URLs of providers and backends depend on the port that the sandbox has received.
  const settingsWithSandbox = readStandaloneSettings({ ...process.env, SANDBOX_PORT: new URL(sandbox.url).port });
  const role = new ProcessRole('standalone', settingsWithSandbox, log, resources);
  const { api } = await openGateway(role, ProjectorModule, SagasModule);
  process.stderr.write(formatWelcome(api, sandbox.url));
  return { api, sandbox: sandbox.url };
});
