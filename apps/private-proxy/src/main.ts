import '#foundation/node-version';
import { shareEventLoop } from '#application/messages';
import { runProcess } from '#foundation/program';
import { nodeTimers } from '#runtime';
import { createEnclaveVerifier } from './attestation/verify-enclaves.ts';
import { startProxy } from './proxy.ts';
import { readProxySettings } from './settings.ts';

await runProcess('private-proxy', readProxySettings, async (settings, log, resources) => {
  shareEventLoop(nodeTimers);
  const proxy = await startProxy(settings, createEnclaveVerifier(settings), log);
  resources.defer(() => proxy.close());
  return { url: proxy.url, gateway: settings.gateway };
});
