import pg from 'pg';
import { createLog, openFoundation, readSettings } from '#foundation';
import { type Customer, ProofCluster } from '../../cluster.ts';
import type { Attack, Finding } from './attack.ts';

const MODEL = 'openai/gpt-5-mini';
const IMAGE_BYTES = 6 * 1024 * 1024;
const FOLLOW_UP_COUNT = 50;
/** Maximum number of bytes that a turn writes to the database on average, including its events. */
const MAX_WRITTEN_BYTES = 100 * 1024;
const QUOTA = 32 * 1024 * 1024;
/** A PNG image of 1 by 1 pixels. It is padded to the size of a large image. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

interface CreatedResponse {
  readonly id?: string;
  readonly store?: boolean;
}

/**
 * A conversation starts with a large image and continues with short requests. Then five more images follow. All six
 * together exceed the quota.
 */
export const storedConversations: Attack = {
  name: 'stored-conversations',
  description: `${FOLLOW_UP_COUNT} short turns after an image of ${IMAGE_BYTES / 1024 ** 2} MiB, then five more such images; all six together exceed the quota`,
  async run(directory): Promise<Finding> {
    const cluster = await ProofCluster.start(directory, 1, { STORED_BYTES_PER_ACCOUNT: String(QUOTA) });
    const foundation = await openFoundation(readSettings({ DATA_DIR: directory }), createLog('warn'));
    const database = new pg.Pool({ connectionString: foundation.databaseUrl, max: 1 });
    const readWrittenBytes = async () =>
      Number((await database.query(`select pg_current_wal_lsn() - '0/0'::pg_lsn as bytes`)).rows[0].bytes);
    const readStoredBytes = async () =>
      Number((await database.query('select sum(octet_length(box)) as bytes from app.responses')).rows[0].bytes ?? 0);
    try {
      const customer = await cluster.createCustomer(5);
      const first = await createResponse(cluster, customer, createImageInput());
      const [wal, size] = [await readWrittenBytes(), await readStoredBytes()];
      let last = first.id;
      for (let i = 0; i < FOLLOW_UP_COUNT; i++) last = (await createResponse(cluster, customer, 'And?', last)).id;
      const averageWrittenBytes = ((await readWrittenBytes()) - wal) / FOLLOW_UP_COUNT;
      const averageStoredBytes = ((await readStoredBytes()) - size) / FOLLOW_UP_COUNT;
      const imageResponses = [];
      for (let i = 0; i < 5; i++) imageResponses.push(await createResponse(cluster, customer, createImageInput()));
      const unstoredCount = imageResponses.filter(({ store }) => store === false).length;
      const full = await readStoredBytes();
      const { output } = await cluster.runLedger('verify');
      return {
        hasPassed:
          last !== undefined &&
          averageWrittenBytes < MAX_WRITTEN_BYTES &&
          unstoredCount > 0 &&
          full <= QUOTA &&
          output.includes('drift 0'),
        measurements: [
          `${(averageWrittenBytes / 1024).toFixed(1)} KiB written per turn, of these ${(averageStoredBytes / 1024).toFixed(1)} KiB stored`,
          `${5 - unstoredCount} of 5 more images stored: ${(full / 1024 ** 2).toFixed(0)} of ${QUOTA / 1024 ** 2} MiB`,
        ].join('; '),
      };
    } finally {
      await database.end();
      await foundation.close();
      await cluster.stop();
    }
  },
};

function createImageInput(): readonly object[] {
  const image_url = `data:image/png;base64,${PNG.padEnd((IMAGE_BYTES * 4) / 3, 'A')}`;
  return [{ role: 'user', content: [{ type: 'input_image', image_url }] }];
}

async function createResponse(
  { gateways }: ProofCluster,
  { apiKey }: Customer,
  input: unknown,
  previous?: string,
): Promise<CreatedResponse> {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const goesOn = previous === undefined ? {} : { previous_response_id: previous };
  const body = JSON.stringify({ model: MODEL, input, max_output_tokens: 16, ...goesOn });
  const response = await fetch(`${gateways[0]}/v1/responses`, { method: 'POST', headers, body });
  if (!response.ok) throw new Error(`${response.status} ${(await response.text()).slice(0, 200)}`);
  return (await response.json()) as CreatedResponse;
}
