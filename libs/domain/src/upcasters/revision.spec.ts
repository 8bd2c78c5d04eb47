/**
 * Snapshots hold what was folded from facts as they were read then. So once an upcaster reads an old fact otherwise, the
 * version of the facts must be another one: a new version of a type makes it so by itself, a correction raises `revision`
 * in `index.ts`. Then put what this test reports into its constants.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { EVENT_SCHEMA } from '#domain';
import { type StoredEvent, toSchemaFingerprint, upcast } from '#kernel';

const FACTS = path.resolve(import.meta.dirname, '../../../testing/src/fixtures/first-version/facts.jsonl');

const VERSION =
  'r1 ChargeAbsorbed.2 CreditAdded.2 HoldReleased.2 HoldSettled.2 InvoiceIssued.2 PaymentReceived.2 PriceListPublished.2 TopupCredited.2';
const DIGEST = '0f50defea7651c8a4ca35dcbe6adc44f45bc41bf19127db6800026b123c94f84';

test('old facts are read as the version of the facts says', () => {
  const hash = createHash('sha256');
  for (const line of readFileSync(FACTS, 'utf8').trimEnd().split('\n')) {
    const fact: StoredEvent = JSON.parse(line);
    hash.update(JSON.stringify(upcast(fact, EVENT_SCHEMA).data));
  }
  expect({ [toSchemaFingerprint(EVENT_SCHEMA)]: hash.digest('hex') }).toEqual({ [VERSION]: DIGEST });
});
