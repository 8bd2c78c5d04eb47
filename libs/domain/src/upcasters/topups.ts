/**
 * Top-ups were paid over Lightning through one LND node only, so their first versions name no coin and no back end. A
 * payment was called by its bare hash, also in credits: all that name one take the same rule, or what was credited
 * before would be credited again under its new name.
 */
import type { Upcaster } from '#kernel';

const LND = 'lnd';
const LIGHTNING = { coin: 'BTC', backend: LND };

/** Version 1 was Lightning with its bonus of five hundredths, as long as there was no other method. */
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

/** Version 1 did not say where the rate of a late payment came from. */
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
