/** A price list is an event. It is published once under its version, and charges refer to it permanently. */
import { type Decider, throwUnknownEvent } from '#kernel';
import type { PriceListPublished } from './events.ts';
import { reject } from './rejections.ts';

export interface PublishPriceList {
  readonly type: 'PublishPriceList';
  readonly data: PriceListPublished['data'];
}

export const priceListDecider: Decider<PublishPriceList, PriceListPublished['data'] | null, PriceListPublished> = {
  getInitialState: () => null,
  evolve: (_, event) => (event.type === 'PriceListPublished' ? event.data : throwUnknownEvent(event as never)),
  decide({ data }, published) {
    if (published === null) return [{ type: 'PriceListPublished', data }];
    if (serializeLines(published) === serializeLines(data)) return [];
    return reject('price_list_conflict', `Price list ${data.version} was published with other prices`);
  },
};

/** Estimates the memory of a price list in bytes. */
export function estimatePriceListBytes(list: PriceListPublished['data'] | null): number {
  return 1_000 * (list?.lines.length ?? 0);
}

function serializeLines({ lines }: PriceListPublished['data']): string {
  return JSON.stringify(lines);
}
