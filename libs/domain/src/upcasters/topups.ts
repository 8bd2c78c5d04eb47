/**
 * At first, top-ups were paid only over Lightning through one LND node. So version 1 has neither a coin nor a payment
 * backend, and payments and credits have the bare payment hash as their id. All upcasters translate this id in the same
 * way, because a payment with two ids would be credited twice.
 */
import type { Upcaster } from '#kernel';

const LND = 'lnd';
const LIGHTNING = { coin: 'BTC', backend: LND };

/** Version 1 was written when Lightning, with its bonus of 5 %, was the only method. */
export const upcastInvoiceIssuedV1: Upcaster = ({ rate, rateSource, msat, paymentHash, invoice, ...rest }) => ({
  ...rest,
  ...LIGHTNING,
  units: msat,
  rate: { value: rate, source: rateSource, at: rest.at },
  reference: paymentHash,
  destination: { kind: 'bolt11', value: invoice },
  bonusPercent: 5,
  confirmations: 0,
});

/** Version 1 did not have the source of the rate. */
export const upcastPaymentReceivedV1: Upcaster = ({ paymentId, msat, rate, paidAt, ...rest }) => ({
  ...rest,
  coin: LIGHTNING.coin,
  payment: { backend: LND, id: paymentId },
  units: msat,
  rate: { value: rate, source: null, at: paidAt },
  receivedAt: paidAt,
});

export const upcastTopupCreditedV1: Upcaster = ({ paymentId, ...rest }) => ({
  ...rest,
  payment: { backend: LND, id: paymentId },
});

export const upcastCreditAddedV1: Upcaster = ({ creditId, ...rest }) => ({ ...rest, creditId: `${LND}/${creditId}` });
