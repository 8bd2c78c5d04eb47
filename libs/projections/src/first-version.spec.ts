/**
 * The events of the first version must result in the same rows as long as the version of a read model is unchanged. If
 * a row changes on purpose, increase the version of its read model, so that its table is rebuilt, and store the new
 * digest in `rows.json`.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { EVENT_SCHEMA } from '#domain';
import { type StoredEvent, upcast } from '#kernel';
import { type ProjectedEvent, projections } from '#projections';
import { computeTable } from '../../testing/src/world/read-model-tables.ts';

const FOLDER = path.resolve(import.meta.dirname, '../../testing/src/fixtures/first-version');

const facts = readFileSync(path.join(FOLDER, 'facts.jsonl'), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line))
  .map((fact): StoredEvent => ({ ...fact, position: BigInt(fact.position), revision: Number(fact.revision) }))
  .map((fact) => upcast(fact, EVENT_SCHEMA) as ProjectedEvent);
const written = JSON.parse(readFileSync(path.join(FOLDER, 'rows.json'), 'utf8'));

test.each(projections.map((each) => [each.name, each] as const))(
  '%s has the rows of its version',
  (name, projection) => {
    const rows = computeTable(projection, facts);
    const digest = createHash('sha256').update(rows.join('\n')).digest('hex');
    expect({ version: projection.version, rows: rows.length, digest }).toEqual(written[name]);
  },
);
