/**
 * `npm run prove:contracts`: the schemas of providers of speech agree with the types of their SDKs, and these SDKs,
 * unmodified, get from the sandbox what they expect of the providers. The SDKs are installed for the proof.
 */
import { copyFile, readFile } from 'node:fs/promises';
import path from 'node:path';
import { createAudioFile } from '../../libs/testing/src/inputs/media-files.ts';
import { generateContracts, SCHEMAS_DIR } from '../contracts/generate.ts';
import { installSpeechSdks, installSpeechTypes } from '../contracts/speech-sdks.ts';
import { root, startApp } from '../processes.ts';
import { runCommand } from './clients/run.ts';

const RUN_WITHIN_MS = 120_000;
const SCRIPTS = ['elevenlabs.mjs', 'deepgram.mjs'];

function report(what: string, hasPassed: boolean): void {
  process.stdout.write(`${what}: ${hasPassed ? 'ok' : 'FAILED'}\n`);
  if (!hasPassed) process.exitCode = 1;
}

async function proveSchemas(): Promise<void> {
  for (const [provider, content] of generateContracts(await installSpeechTypes())) {
    const stored = await readFile(path.join(root, SCHEMAS_DIR, `${provider}.json`), 'utf8');
    report(`schemas of ${provider}`, stored === content);
  }
}

async function proveSandbox(): Promise<void> {
  const folder = await installSpeechSdks();
  const sandbox = await startApp('sandbox', { SANDBOX_PORT: '0' });
  const recording = createAudioFile('wav', { seconds: 3, directive: '[[sandbox text="Grüezi, you. Three?"]]' });
  const env = {
    PATH: process.env.PATH ?? '',
    SANDBOX_URL: JSON.parse(sandbox.readyLine).url,
    RECORDING: recording.toString('base64'),
  };
  try {
    for (const script of SCRIPTS) {
      const copy = path.join(folder, script); // so that its imports resolve
      await copyFile(path.join(root, 'tools/proofs/contracts', script), copy);
      const args = [process.execPath, copy];
      const { code, output } = await runCommand(args, { cwd: folder, env, timeoutMs: RUN_WITHIN_MS });
      report(`sandbox with ${script}`, code === 0);
      if (code !== 0) process.stdout.write(output);
    }
  } finally {
    await sandbox.stop();
  }
}

await proveSchemas();
await proveSandbox();
