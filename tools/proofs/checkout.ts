/**
 * `npm run prove:checkout`: the page on which a top-up is paid, in a real browser (Chromium) against the built program: on
 * a phone, in both colour schemes, without scripts, by keyboard alone and by an accessibility checker; what is copied and
 * what its QR code says is the invoice, and the status follows a payment within a second. Browser, driver and checker are
 * installed when they are needed. Screenshots are left in `.proofs/checkout`.
 */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Cluster } from '../cluster.ts';
import { root } from '../processes.ts';
import { install, PLACE } from './clients/install.ts';
import { run } from './clients/run.ts';

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const PACKAGES = { 'playwright-core': '1.65.1', 'axe-core': '4.14.1' };
const WITHIN_MS = 300_000;

const print = (line: string) => void process.stdout.write(`${line}\n`);

/** Debian's package, where this may install one. */
async function installChromium(): Promise<void> {
  if (existsSync(CHROMIUM)) return;
  const command = ['apt-get', 'install', '-y', '--no-install-recommends', 'chromium', 'fonts-dejavu-core'];
  const env = { ...(process.env as Record<string, string>), DEBIAN_FRONTEND: 'noninteractive' };
  const { code } = await run(command, { cwd: root, env, withinMs: WITHIN_MS });
  if (code !== 0 || !existsSync(CHROMIUM)) {
    throw new Error('Chromium is missing: install it (on Debian: apt-get install chromium) or name it in CHROMIUM');
  }
}

async function prove(dataDir: string): Promise<boolean> {
  await installChromium();
  const packages = await install({ npm: PACKAGES });
  const screenshots = path.join(PLACE, 'checkout');
  await mkdir(screenshots, { recursive: true });
  const cluster = await Cluster.standalone(dataDir);
  try {
    const { apiKey } = await cluster.customer(0);
    const env = {
      ...(process.env as Record<string, string>),
      ...{ CHROMIUM, PACKAGES: packages, SCREENSHOTS: screenshots },
      ...{ GATEWAY_URL: cluster.gateways[0] as string, SANDBOX_URL: cluster.sandbox, API_KEY: apiKey },
    };
    const script = [process.execPath, path.join(root, 'tools/proofs/checkout/browser.mjs')];
    const { code, output } = await run(script, { cwd: root, env, withinMs: WITHIN_MS });
    print(output.trim());
    return code === 0;
  } finally {
    await cluster.stop();
  }
}

const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-checkout-'));
try {
  if (!(await prove(dataDir))) process.exitCode = 1;
} finally {
  await rm(dataDir, { recursive: true, force: true });
}
