/**
 * Snapshots have state that was folded from events as the upcasters of that time returned them. If an upcaster changes,
 * the schema fingerprint must change too. A new version of an event type changes the fingerprint automatically. After
 * the correction of an upcaster, increase `revision` in `index.ts`. In both cases, copy the values that this test
 * reports into its constants.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { EVENT_SCHEMA } from '#domain';
import { type StoredEvent, toSchemaFingerprint, upcast } from '#kernel';

const FACTS = path.resolve(import.meta.dirname, '../../../testing/src/fixtures/first-version/facts.jsonl');

const VERSION =
  'r1 ChargeAbsorbed.2 CreditAdded.2 HoldReleased.2 HoldSettled.2 InvoiceIssued.2 KeyCreated.2 KeyUpdated.2 PaymentReceived.2 PriceListPublished.2 TopupCredited.2';
const DIGEST = '33fc1a9ae26d2303e6b47dff172933baf486d7f66307550bf77c4b8d518edc14';

test('upcasting old events gives the same data as long as the schema fingerprint is the same', () => {
  const hash = createHash('sha256');
  for (const line of readFileSync(FACTS, 'utf8').trimEnd().split('\n')) {
    const fact: StoredEvent = JSON.parse(line);
    hash.update(JSON.stringify(upcast(fact, EVENT_SCHEMA).data));
  }
  expect({ [toSchemaFingerprint(EVENT_SCHEMA)]: hash.digest('hex') }).toEqual({ [VERSION]: DIGEST });
});
