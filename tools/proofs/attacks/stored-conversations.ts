import pg from 'pg';
import { createLog, openFoundation, readSettings } from '#foundation';
import { type Customer, ProofCluster } from '../../cluster.ts';
import type { Attack, Finding } from './attack.ts';

const MODEL = 'openai/gpt-5-mini';
const PICTURE_BYTES = 6 * 1024 * 1024;
const TURNS = 50;
/** What one turn may write, its facts included. */
const MOST_WRITTEN = 100 * 1024;
const QUOTA = 32 * 1024 * 1024;
/** Of the head of a picture: 1 by 1, of a kind that every model takes. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

interface Answer {
  readonly id?: string;
  readonly store?: boolean;
}

/** A conversation that begins with a large picture, and goes on in requests of 120 bytes; then pictures, until the room is used up. */
export const storedConversations: Attack = {
  name: 'stored-conversations',
  what: `${TURNS} short turns behind a picture of ${PICTURE_BYTES / 1024 ** 2} MiB, and such pictures until the room is used up`,
  async run(directory): Promise<Finding> {
    const cluster = await ProofCluster.start(directory, 1, { STORED_BYTES_PER_ACCOUNT: String(QUOTA) });
    const foundation = await openFoundation(readSettings({ DATA_DIR: directory }), createLog('warn'));
    const database = new pg.Pool({ connectionString: foundation.databaseUrl, max: 1 });
    const written = async () =>
      Number((await database.query(`select pg_current_wal_lsn() - '0/0'::pg_lsn as bytes`)).rows[0].bytes);
    const stored = async () =>
      Number((await database.query('select sum(octet_length(box)) as bytes from app.responses')).rows[0].bytes ?? 0);
    try {
      const customer = await cluster.customer(5);
      const first = await respond(cluster, customer, pictured());
      const [wal, size] = [await written(), await stored()];
      let last = first.id;
      for (let i = 0; i < TURNS; i++) last = (await respond(cluster, customer, 'And?', last)).id;
      const perTurn = ((await written()) - wal) / TURNS;
      const kept = ((await stored()) - size) / TURNS;
      const pictures = [];
      for (let i = 0; i < 5; i++) pictures.push(await respond(cluster, customer, pictured()));
      const refused = pictures.filter(({ store }) => store === false).length;
      const full = await stored();
      const { output } = await cluster.ledger('verify');
      return {
        held:
          last !== undefined && perTurn < MOST_WRITTEN && refused > 0 && full <= QUOTA && output.includes('drift 0'),
        measured: [
          `${(perTurn / 1024).toFixed(1)} KiB written for a turn, ${(kept / 1024).toFixed(1)} KiB of them stored`,
          `${5 - refused} of 5 more pictures stored: ${(full / 1024 ** 2).toFixed(0)} MiB of ${QUOTA / 1024 ** 2}`,
        ].join('; '),
      };
    } finally {
      await database.end();
      await foundation.close();
      await cluster.stop();
    }
  },
};

function pictured(): readonly object[] {
  const image_url = `data:image/png;base64,${PNG.padEnd((PICTURE_BYTES * 4) / 3, 'A')}`;
  return [{ role: 'user', content: [{ type: 'input_image', image_url }] }];
}

async function respond(
  { gateways }: ProofCluster,
  { apiKey }: Customer,
  input: unknown,
  previous?: string,
): Promise<Answer> {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const goesOn = previous === undefined ? {} : { previous_response_id: previous };
  const body = JSON.stringify({ model: MODEL, input, max_output_tokens: 16, ...goesOn });
  const answer = await fetch(`${gateways[0]}/v1/responses`, { method: 'POST', headers, body });
  if (!answer.ok) throw new Error(`${answer.status} ${(await answer.text()).slice(0, 200)}`);
  return (await answer.json()) as Answer;
}
