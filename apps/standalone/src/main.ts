import 'reflect-metadata';
import { runProcess } from '#foundation';
import { ProcessRole, reportUnknownSettings, SETTINGS_READER } from '#modules';
import { openGateway } from '../../gateway/src/gateway.ts';
import { ProjectorModule } from '../../projector/src/projector.module.ts';
import { SagasModule } from '../../sagas/src/sagas.module.ts';
import { startSandbox } from '../../sandbox/src/sandbox.ts';
import { formatWelcome } from './welcome.ts';

/** Runs all roles and the sandbox in one process with one event store. `npm start` runs this file. */
await runProcess(
  'standalone',
  (env) => SETTINGS_READER.read(env),
  async (settings, log, resources) => {
    reportUnknownSettings(process.env, settings, log);
    const sandbox = await startSandbox({ port: settings.sandboxPort, log });
    resources.defer(() => sandbox.close());
    // With SANDBOX_PORT=0 the URLs of providers and backends depend on the port that the sandbox has received.
    const env = { ...process.env, SANDBOX_PORT: new URL(sandbox.url).port };
    const role = new ProcessRole('standalone', SETTINGS_READER.read(env), log, resources);
    role.watchSecrets(env, SETTINGS_READER);
    const { api } = await openGateway(role, ProjectorModule, SagasModule);
    process.stderr.write(formatWelcome(api, sandbox.url));
    return { api, sandbox: sandbox.url };
  },
);
