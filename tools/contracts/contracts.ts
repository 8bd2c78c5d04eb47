/** `npm run contracts`: writes the schemas of what providers accept and send, after an update of their SDKs. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { root } from '../processes.ts';
import { generateContracts, getInstalledSource, SCHEMAS_DIR } from './generate.ts';
import { installSpeechTypes } from './speech-sdks.ts';

const schemas = [...generateContracts(getInstalledSource(root)), ...generateContracts(await installSpeechTypes())];
for (const [provider, content] of schemas) {
  writeFileSync(path.join(root, SCHEMAS_DIR, `${provider}.json`), content);
}
