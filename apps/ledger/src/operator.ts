/** What the commands need with which an operator opens, funds and restricts accounts. */

import { userInfo } from 'node:os';
import type pg from 'pg';
import { createStreams, Secrets, type Streams, toMasterKeyId } from '#application';
import type { Actor } from '#domain';
import { PostgresSnapshots } from '#eventstore';
import { assertKeyRingComplete, type Foundation, findMasterKeys, StartError } from '#foundation';
import { nodeRandomness } from '#runtime';
import { withPool } from './with-pool.ts';

const MAX_ACTOR_CHARACTERS = 100;
const MAX_REASON_CHARACTERS = 500;
/** Without control characters, line separators, and characters that change the direction of the text around them. */
const PRINTABLE = /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u;

export interface Operator {
  readonly streams: Streams;
  readonly secrets: Secrets;
  readonly pool: pg.Pool;
  /** Who runs the command. Nothing proves the name, so it is not verified. */
  readonly actor: Actor;
}

/**
 * Runs `work` with the streams and secrets of the installation.
 * @param actorName the user of the operating system if undefined
 * @throws StartError if the command does not have the master keys of the installation: its API keys would not work
 */
export function withOperator(
  foundation: Foundation,
  actorName: string | undefined,
  work: (operator: Operator) => Promise<void>,
): Promise<void> {
  const actor = {
    name: parseText('--actor', actorName ?? userInfo().username, MAX_ACTOR_CHARACTERS),
    isVerified: false,
  };
  return withPool(foundation.databaseUrl, async (pool) => {
    const secrets = await openSecrets(foundation, pool);
    const snapshots = new PostgresSnapshots(pool, secrets.derivePurposeKeys('countinghouse snapshots'));
    const streams = createStreams(foundation.store, snapshots, foundation.runtime);
    await work({ streams, secrets, pool, actor });
  });
}

async function openSecrets({ settings }: Foundation, pool: pg.Pool): Promise<Secrets> {
  const [masterKey, ...otherKeys] = await findMasterKeys(settings);
  if (!masterKey)
    throw new StartError(
      'There is no master key yet: start a gateway first, or set MASTER_KEY or DATA_DIR as it has them.',
    );
  const inUse = await assertKeyRingComplete(pool, [masterKey, ...otherKeys].map(toMasterKeyId));
  if (!inUse.some(({ id }) => id === toMasterKeyId(masterKey)))
    throw new StartError('The first key of MASTER_KEY is not in use here yet: start a gateway with it first.');
  return new Secrets(nodeRandomness, masterKey, otherKeys, inUse[0]?.id);
}

/**
 * Parses a text that events store.
 * @throws StartError if it is empty, too long, or has control characters
 */
function parseText(option: string, text: string, maxCharacters: number): string {
  const trimmed = text.trim();
  if (trimmed === '' || trimmed.length > maxCharacters || !trimmed.isWellFormed() || !PRINTABLE.test(trimmed))
    throw new StartError(
      `${option} must be a text of 1 to ${maxCharacters} characters without line breaks and other control characters.`,
    );
  return trimmed;
}

/** @throws StartError if the text of `--reason` cannot be stored */
export function parseReason(reason: string): string {
  return parseText('--reason', reason, MAX_REASON_CHARACTERS);
}
