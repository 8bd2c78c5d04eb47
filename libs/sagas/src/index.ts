export { expireHolds, type HoldExpiryPorts } from './hold-expiry.ts';
export { type InvoiceWatchPorts, watchInvoices } from './invoice-watch.ts';
export { type Saga, sagaSink } from './saga.ts';
export { type Crediting, topupCrediting } from './topup-crediting.ts';
