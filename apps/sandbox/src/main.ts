import { runProcess } from '#infra';
import { startSandbox } from './sandbox.ts';

await runProcess('sandbox', async ({ sandboxPort, host }, log, opened) => {
  const sandbox = await startSandbox({ port: sandboxPort, host, log });
  opened.defer(() => sandbox.close());
  return sandbox.where;
});
