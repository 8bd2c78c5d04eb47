/** A workflow with every kind of step, for tests of the workflow runner. */
import type { Decider, EffectStep, Message, QueryStep, SendStep, Workflow } from '#kernel';
import { assertFencingToken } from '#kernel';

type Timestamped = { readonly at: string };
export type ParcelEvent =
  | Message<'ParcelOrdered', Timestamped>
  | Message<'StockFound', Timestamped>
  | Message<'ShippingBegun', { readonly key: string; readonly token: number } & Timestamped>
  | Message<'ParcelShipped', Timestamped>
  | Message<'ShippingUnknown', Timestamped>
  | Message<'ParcelAnnounced', Timestamped>;

export type ParcelCommand =
  | Message<'OrderParcel', Timestamped>
  | Message<'NoteStock', Timestamped>
  | Message<'BeginShipping', { readonly key: string; readonly token: number } & Timestamped>
  | Message<'EndShipping', { readonly shipped: boolean | 'unknown' } & Timestamped>
  | Message<'NoteAnnounced', Timestamped>;

export interface Parcel {
  readonly orderedAt: string | undefined;
  readonly inStock: boolean;
  readonly shipping: 'not started' | { readonly key: string; readonly token: number } | 'unknown' | 'done';
  readonly token: number;
  readonly announced: boolean;
}

export type ParcelStep = SendStep<'announce' | 'note announced'> | QueryStep<'stock' | 'shipping'> | EffectStep<'ship'>;

export const STOCK_POLL_INTERVAL_MS = 2_000;
const GIVEN_UP_AFTER_MS = 60_000;

const decider: Decider<ParcelCommand, Parcel, ParcelEvent> = {
  getInitialState: () => ({
    orderedAt: undefined,
    inStock: false,
    shipping: 'not started',
    token: 0,
    announced: false,
  }),
  evolve(parcel, { type, data }) {
    switch (type) {
      case 'ParcelOrdered':
        return { ...parcel, orderedAt: data.at };
      case 'StockFound':
        return { ...parcel, inStock: true };
      case 'ShippingBegun':
        return { ...parcel, token: data.token, shipping: { key: data.key, token: data.token } };
      case 'ParcelShipped':
        return { ...parcel, shipping: 'done' };
      case 'ShippingUnknown':
        return { ...parcel, shipping: 'unknown' };
      case 'ParcelAnnounced':
        return { ...parcel, announced: true };
    }
  },
  decide({ type, data }, parcel) {
    switch (type) {
      case 'OrderParcel':
        return parcel.orderedAt ? [] : [{ type: 'ParcelOrdered', data }];
      case 'NoteStock':
        return parcel.inStock ? [] : [{ type: 'StockFound', data }];
      case 'BeginShipping':
        assertFencingToken(parcel.token, data.token);
        return parcel.shipping === 'not started' ? [{ type: 'ShippingBegun', data }] : [];
      case 'EndShipping':
        if (parcel.shipping === 'done') return [];
        if (data.shipped === true) return [{ type: 'ParcelShipped', data: { at: data.at } }];
        return parcel.shipping === 'unknown' ? [] : [{ type: 'ShippingUnknown', data: { at: data.at } }];
      case 'NoteAnnounced':
        return parcel.announced ? [] : [{ type: 'ParcelAnnounced', data }];
    }
  },
};

/** Ships a parcel once when it is in stock, and then notifies its customer. */
export const parcels: Workflow<ParcelCommand, Parcel, ParcelEvent, ParcelStep> = {
  name: 'parcels',
  category: 'parcel',
  decider,
  plan(parcel, now) {
    if (!parcel.orderedAt || parcel.announced) return { steps: [] };
    const nextPollAt = new Date(Date.parse(now) + STOCK_POLL_INTERVAL_MS).toISOString();
    const givenUpAt = new Date(Date.parse(parcel.orderedAt) + GIVEN_UP_AFTER_MS).toISOString();
    if (!parcel.inStock) {
      if (now >= givenUpAt) return { steps: [] };
      return { steps: [{ step: 'query', query: 'stock' }], dueAt: nextPollAt };
    }
    if (parcel.shipping === 'not started') return { steps: [{ step: 'effect', key: 'ship', effect: 'ship' }] };
    if (parcel.shipping === 'unknown') {
      return { steps: [{ step: 'query', query: 'shipping' }], dueAt: nextPollAt };
    }
    if (parcel.shipping !== 'done') return { steps: [] };
    return {
      steps: [
        { step: 'send', command: 'announce' },
        { step: 'send', command: 'note announced' },
      ],
    };
  },
  effects: {
    findStarted: ({ shipping }) => (typeof shipping === 'object' ? shipping : undefined),
    createStartCommand: ({ key }, token, at) => ({ type: 'BeginShipping', data: { key, token, at } }),
    createEndCommand: (_, outcome, at) => ({
      type: 'EndShipping',
      data: { shipped: outcome.isKnown || 'unknown', at },
    }),
  },
};
