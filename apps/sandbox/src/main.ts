import '#foundation/node-version';
import { readSettings, runProcess } from '#foundation';
import { loadSandbox } from './load-sandbox.ts';

await runProcess('sandbox', readSettings, async ({ sandboxPort, sandboxUrl, host }, log, resources) => {
  const { startSandbox } = await loadSandbox();
  const sandbox = await startSandbox({ port: sandboxPort, host, log, publicUrl: sandboxUrl });
  resources.defer(() => sandbox.close());
  return sandbox.readyFields;
});
