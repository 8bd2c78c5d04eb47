/** `npm run contracts`: writes the schemas of what providers accept and send, after an update of their SDKs. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { generateContracts, SCHEMAS_DIR } from './generate.ts';

for (const [provider, content] of generateContracts(process.cwd())) {
  writeFileSync(path.join(SCHEMAS_DIR, `${provider}.json`), content);
}
