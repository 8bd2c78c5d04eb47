import { setTimeout as delay } from 'node:timers/promises';
import { grantEventStoreDbAccess, parseEventStoreDbAddress } from '#eventstore';
import { readSetting, SETTINGS } from '#foundation';
import { SettingError, secret } from '#foundation/program';
import { StoreUnavailableError } from '#kernel';

/** The administrator that every EventStoreDB has. */
const ADMIN_USERNAME = 'admin';
/** How long to retry while the server is unavailable, for instance because it is starting. */
const GRANT_TIMEOUT_MS = 60_000;
const RETRY_INTERVAL_MS = 1_000;

const ADMIN_PASSWORD_SETTING = secret(
  'STORE_ADMIN_PASSWORD',
  /./,
  `the password of EventStoreDB's user ${ADMIN_USERNAME}`,
  '',
);

/** Creates the user in EVENTSTORE_URL, and grants it the rights that roles require. Idempotent. */
async function main(): Promise<void> {
  const address = readSetting(SETTINGS.eventStoreUrl, process.env);
  if (address === undefined) throw new SettingError('EVENTSTORE_URL must be set.');
  const parsedAddress = parseEventStoreDbAddress(address);
  if (typeof parsedAddress !== 'string' && !parsedAddress.usesTls)
    throw new SettingError('EVENTSTORE_URL must use TLS: a server without TLS has no users.');
  await grantWhenAvailable(address, readSetting(ADMIN_PASSWORD_SETTING, process.env));
  process.stdout.write('The user in EVENTSTORE_URL exists and may read $all.\n');
}

async function grantWhenAvailable(address: string, password: string): Promise<void> {
  for (const deadline = performance.now() + GRANT_TIMEOUT_MS; ; await delay(RETRY_INTERVAL_MS)) {
    try {
      return await grantEventStoreDbAccess(address, { username: ADMIN_USERNAME, password });
    } catch (error) {
      if (!(error instanceof StoreUnavailableError) || performance.now() > deadline) throw error;
    }
  }
}

/** Formats an error for the user. The text names EventStoreDB, unless a setting is invalid. */
function formatError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof SettingError) return error.message;
  const { cause } = error instanceof StoreUnavailableError ? error : {};
  return `EventStoreDB: ${error.message}${cause instanceof Error ? ` (${cause.message})` : ''}.`;
}

await main().catch((error) => {
  process.stderr.write(`${formatError(error)}\n`);
  process.exitCode = 1;
});
