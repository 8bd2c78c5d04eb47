/** The SDKs of providers of speech, a tenth of all packages. Only schemas and a proof need them, which install them. */
import { cp } from 'node:fs/promises';
import path from 'node:path';
import { root } from '../processes.ts';
import { install, type Packages, runOrThrow } from '../proofs/clients/install.ts';
import type { ContractSource } from './generate.ts';

export const SPEECH_SDKS: Packages = { '@elevenlabs/elevenlabs-js': '2.73.0', '@deepgram/sdk': '5.13.0' };

/** Installs the SDKs. @returns their directory */
export function installSpeechSdks(): Promise<string> {
  return install({ npm: SPEECH_SDKS });
}

/**
 * Installs the SDKs and copies the contracts by their types to them.
 * @throws Error if an SDK has renamed or removed a type
 */
export async function installSpeechTypes(): Promise<ContractSource> {
  const directory = path.join(await installSpeechSdks(), 'contracts');
  await cp(path.join(root, 'tools/contracts/speech'), directory, { recursive: true });
  await runOrThrow([path.join(root, 'node_modules/.bin/tsc'), '--project', directory], root);
  return { directory, interfaceName: 'SpeechContracts', sdks: SPEECH_SDKS };
}
