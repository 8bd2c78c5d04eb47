import '#foundation/node-version';
import { readSettings, runProcess } from '#foundation';
import { startSandbox } from './sandbox.ts';

await runProcess('sandbox', readSettings, async ({ sandboxPort, sandboxUrl, host }, log, resources) => {
  const sandbox = await startSandbox({ port: sandboxPort, host, log, publicUrl: sandboxUrl });
  resources.defer(() => sandbox.close());
  return sandbox.readyFields;
});
