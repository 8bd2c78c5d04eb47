export { expireHolds, type HoldExpiryPorts } from './hold-expiry.ts';
export { type InvoiceWatchPorts, watchInvoices } from './invoice-watch.ts';
export { type Saga, sagaSink } from './saga.ts';
export { topupCrediting } from './topup-crediting.ts';
