/**
 * `npm run prove:rotation [-- --rate N]`: every kind of secret is replaced in its file while HAProxy sends 60 (or N)
 * requests per second to three gateways, a fifth of them streams of 40 s, and while payments are made and images are
 * stored once per second. The kinds are: user and password of the databases, master key, API keys of providers, macaroon
 * and certificate of a Lightning node, API key of a BTCPay Server, and key of a bucket. Each service rejects the previous
 * secret once all processes use the new one. No request fails, no service rejects one, each request is charged once by
 * its reported usage, and the bill of the providers equals the ledger. HAProxy and versitygw are installed if missing.
 */
import { createProgram, runProgram } from '#foundation/command-line';
import { root } from '../processes.ts';
import { print, reportLoad } from './rolling/report.ts';
import { RollingScene } from './rolling/scene.ts';
import { RegularUses } from './rotation/regular-uses.ts';
import { type Installation, RotatedServices } from './rotation/rotations.ts';

const STREAM_MS = 40_000;
const CREDIT_USD = 100;
const BEFORE_MS = 5_000;

async function rotateAll(scene: RollingScene, services: RotatedServices, { rotations }: Installation) {
  let havePassed = true;
  for (const { what, run } of rotations) {
    const { hasPassed, observation } = await run((secrets) => services.files.replace(secrets, scene.listProcesses()));
    print(`${hasPassed ? 'replaced' : 'FAILED'}: ${what}: ${observation}`);
    havePassed &&= hasPassed;
  }
  return havePassed;
}

async function prove({ rate }: { readonly rate: string }): Promise<void> {
  const services = await RotatedServices.open();
  try {
    let installation: Installation | undefined;
    const scene = await RollingScene.open(root, async (cluster, databaseUrl) => {
      installation = await services.start(cluster, databaseUrl);
      return { ...installation.settings, MAX_OPEN_INVOICES: '10000' };
    });
    try {
      const customer = await scene.cluster.createCustomer(CREDIT_USD);
      const load = scene.startLoad(Number(rate), STREAM_MS);
      const uses = new RegularUses(scene.cluster, scene.url, customer);
      let havePassed = false;
      try {
        await new Promise((resolve) => setTimeout(resolve, BEFORE_MS));
        havePassed = await rotateAll(scene, services, installation as Installation);
      } finally {
        await Promise.all([load.stop(), uses.stop()]);
      }
      const { topUpCount, imageIds, failures } = uses;
      print(`${topUpCount} payments credited, ${imageIds.length} images served from the bucket`);
      for (const failure of failures) print(`FAILED: ${failure}`);
      const isCharged = await reportLoad(scene, load, imageIds);
      if (!havePassed || !isCharged || failures.length > 0) process.exitCode = 1;
    } finally {
      await scene.close();
    }
  } finally {
    await services.close();
  }
}

const program = createProgram('npm run prove:rotation --', 'Proves that secrets are replaced without failed requests.');
program.option('--rate <number>', 'Requests per second.', '60');
await runProgram(program.action(prove), process.argv.slice(2));
