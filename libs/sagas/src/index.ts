export { expireHolds, type HoldExpiryPorts } from './hold-expiry.ts';
export { type InvoiceWatchPorts, type WatchedInvoice, watchInvoices } from './invoice-watch.ts';
export { type Saga, sagaSink } from './saga.ts';
export { type CreditPayment, topupCrediting } from './topup-crediting.ts';
