import { runProcess } from '#foundation/program';
import { enclaveVerifier } from './attestation/verify-enclaves.ts';
import { startProxy } from './proxy.ts';
import { readProxySettings } from './settings.ts';

await runProcess('private-proxy', readProxySettings, async (settings, log, opened) => {
  const proxy = await startProxy(settings, enclaveVerifier(settings), log);
  opened.defer(() => proxy.close());
  return { url: proxy.url, gateway: settings.gateway };
});
