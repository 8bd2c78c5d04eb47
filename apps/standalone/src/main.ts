import 'reflect-metadata';
import { openFoundation, readSettings, runProcess } from '#infra';
import { startGateway } from '../../gateway/src/gateway.ts';
import { startProjector } from '../../projector/src/projector.ts';
import { startSagas } from '../../sagas/src/sagas.ts';
import { startSandbox } from '../../sandbox/src/sandbox.ts';
import { welcome } from './welcome.ts';

/** Everything in one process: what `npm start` runs. */
await runProcess('standalone', async (settings, log, opened) => {
  const keep = <T extends { close(): Promise<void> }>(running: T): T => {
    opened.defer(() => running.close());
    return running;
  };
  const sandbox = keep(await startSandbox({ port: settings.sandboxPort, log }));
  // The addresses of the outside world follow from the port that the sandbox really has.
  const addressed = readSettings({ ...process.env, SANDBOX_PORT: new URL(sandbox.url).port });
  const foundation = keep(await openFoundation(addressed, log));
  keep(await startProjector(foundation));
  keep(await startSagas(foundation));
  const gateway = keep(await startGateway(foundation));
  process.stderr.write(welcome(gateway.where.api, sandbox.url));
  return { ...gateway.where, sandbox: sandbox.url };
});
