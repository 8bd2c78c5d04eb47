/**
 * `npm run prove:checkout`: tests the payment page of a top-up in a real browser (Chromium): on a phone-sized screen,
 * in both colour schemes, without scripts, with the keyboard only, and with an accessibility checker. The copied text
 * and the QR code are the invoice, and the page follows the status of the API within a second. A card payment is made,
 * from the form to the page of the paid top-up. Browser, driver and checker are installed if missing. Screenshots are
 * saved in `.proofs/checkout`.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ProofCluster } from '../cluster.ts';
import { root } from '../processes.ts';
import { CHROMIUM, DRIVER, installChromium } from './clients/chromium.ts';
import { install, PROOFS_DIR } from './clients/install.ts';
import { runCommand } from './clients/run.ts';

const PACKAGES = { ...DRIVER, 'axe-core': '4.14.1' };
const WITHIN_MS = 300_000;

const print = (line: string) => void process.stdout.write(`${line}\n`);

async function prove(dataDir: string): Promise<boolean> {
  await installChromium();
  const packages = await install({ npm: PACKAGES });
  const screenshots = path.join(PROOFS_DIR, 'checkout');
  await mkdir(screenshots, { recursive: true });
  const cluster = await ProofCluster.startStandalone(dataDir);
  try {
    const { apiKey } = await cluster.createCustomer(0);
    const env = {
      ...(process.env as Record<string, string>),
      CHROMIUM,
      PACKAGES: packages,
      SCREENSHOTS: screenshots,
      GATEWAY_URL: cluster.gateways[0] as string,
      SANDBOX_URL: cluster.sandbox,
      API_KEY: apiKey,
    };
    const script = [process.execPath, path.join(root, 'tools/proofs/checkout/browser.mjs')];
    const { code, output } = await runCommand(script, { cwd: root, env, timeoutMs: WITHIN_MS });
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
