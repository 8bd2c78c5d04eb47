import { readSettings, runProcess } from '#foundation';
import { startSandbox } from './sandbox.ts';

await runProcess('sandbox', readSettings, async ({ sandboxPort, sandboxUrl, host }, log, opened) => {
  const sandbox = await startSandbox({ port: sandboxPort, host, log, reachedAt: sandboxUrl });
  opened.defer(() => sandbox.close());
  return sandbox.readyFields;
});
