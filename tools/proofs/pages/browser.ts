/** Starts Chromium with a profile that later starts can use again. Types are limited to what this proof needs. */
import { createRequire } from 'node:module';
import path from 'node:path';
import { CHROMIUM } from '../clients/chromium.ts';

export interface BrowserPage {
  goto(url: string, options: { readonly waitUntil: 'load'; readonly timeout: number }): Promise<unknown>;
  close(): Promise<void>;
}

export interface Browser {
  newPage(): Promise<BrowserPage>;
  pages(): readonly BrowserPage[];
  close(): Promise<void>;
}

/** Protections of the browser that may stop the attacks. They are turned off, so that only the proxy can stop them. */
const UNPROTECTED = [
  'LocalNetworkAccessChecks',
  'BlockInsecurePrivateNetworkRequests',
  'PrivateNetworkAccessSendPreflights',
  'HttpsUpgrades',
  'HttpsFirstBalancedModeAutoEnable',
];

/**
 * @param packages the folder in which playwright-core is installed
 * @param hosts rules in the format of `--host-resolver-rules`
 */
export function launchBrowser(packages: string, profile: string, hosts: string): Promise<Browser> {
  const { chromium } = createRequire(path.join(packages, 'package.json'))('playwright-core') as {
    readonly chromium: { launchPersistentContext(profile: string, options: object): Promise<Browser> };
  };
  const args = [
    '--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update',
    '--disable-sync --disable-popup-blocking --autoplay-policy=no-user-gesture-required',
    `--disable-features=${UNPROTECTED.join(',')}`,
  ].flatMap((line) => line.split(' '));
  const options = { executablePath: CHROMIUM, headless: true, args: [...args, `--host-resolver-rules=${hosts}`] };
  return chromium.launchPersistentContext(profile, options);
}
