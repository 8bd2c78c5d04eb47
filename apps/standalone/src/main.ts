import 'reflect-metadata';
import { readProviders } from '#catalogue';
import { listUnsafeSettings, readSettings, runProcess } from '#foundation';
import { ProcessRole } from '#modules';
import { openGateway } from '../../gateway/src/gateway.ts';
import { ProjectorModule } from '../../projector/src/projector.module.ts';
import { SagasModule } from '../../sagas/src/sagas.module.ts';
import { startSandbox } from '../../sandbox/src/sandbox.ts';
import { formatWelcome } from './welcome.ts';

const readStandaloneSettings = (env: NodeJS.ProcessEnv) => readSettings(env, readProviders, listUnsafeSettings);

/** Everything in one process and one container, with one store and one feed: what `npm start` runs. */
await runProcess('standalone', readStandaloneSettings, async (settings, log, resources) => {
  const sandbox = await startSandbox({ port: settings.sandboxPort, log });
  resources.defer(() => sandbox.close());
  // The addresses of the outside world follow from the port that the sandbox really has.
  const settingsWithSandbox = readStandaloneSettings({ ...process.env, SANDBOX_PORT: new URL(sandbox.url).port });
  const role = new ProcessRole('standalone', settingsWithSandbox, log, resources);
  const { api } = await openGateway(role, ProjectorModule, SagasModule);
  process.stderr.write(formatWelcome(api, sandbox.url));
  return { api, sandbox: sandbox.url };
});
