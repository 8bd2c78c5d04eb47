/** Installs Chromium from Debian's package, for proofs with web pages. playwright-core drives it. */
import { existsSync } from 'node:fs';
import { root } from '../../processes.ts';
import { runCommand } from './run.ts';

export const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
export const DRIVER = { 'playwright-core': '1.65.1' };

const WITHIN_MS = 300_000;

/** @throws Error if Chromium is missing and cannot be installed */
export async function installChromium(): Promise<void> {
  if (existsSync(CHROMIUM)) return;
  const command = ['apt-get', 'install', '-y', '--no-install-recommends', 'chromium', 'fonts-dejavu-core'];
  const env = { ...(process.env as Record<string, string>), DEBIAN_FRONTEND: 'noninteractive' };
  const { code } = await runCommand(command, { cwd: root, env, timeoutMs: WITHIN_MS });
  if (code !== 0 || !existsSync(CHROMIUM)) {
    throw new Error('Chromium is missing: install it (Debian: apt-get install chromium) or set its path in CHROMIUM');
  }
}
