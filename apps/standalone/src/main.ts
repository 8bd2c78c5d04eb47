import 'reflect-metadata';
import { readProviders } from '#catalogue';
import { readSettings, runProcess, unsafeSettings } from '#foundation';
import { ProcessRole } from '#modules';
import { openGateway } from '../../gateway/src/gateway.ts';
import { ProjectorModule } from '../../projector/src/projector.module.ts';
import { SagasModule } from '../../sagas/src/sagas.module.ts';
import { startSandbox } from '../../sandbox/src/sandbox.ts';
import { welcome } from './welcome.ts';

const read = (env: NodeJS.ProcessEnv) => readSettings(env, readProviders, unsafeSettings);

/** Everything in one process and one container, with one store and one feed: what `npm start` runs. */
await runProcess('standalone', read, async (settings, log, opened) => {
  const sandbox = await startSandbox({ port: settings.sandboxPort, log });
  opened.defer(() => sandbox.close());
  // The addresses of the outside world follow from the port that the sandbox really has.
  const addressed = read({ ...process.env, SANDBOX_PORT: new URL(sandbox.url).port });
  const role = new ProcessRole('standalone', addressed, log, opened);
  const { api } = await openGateway(role, ProjectorModule, SagasModule);
  process.stderr.write(welcome(api, sandbox.url));
  return { api, sandbox: sandbox.url };
});
