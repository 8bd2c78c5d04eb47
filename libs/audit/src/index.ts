export { Auditor } from './auditor.ts';
export { ContestedPayments } from './contested-payments.ts';
export { RepeatedPayments } from './repeated-payments.ts';
export { verify } from './verify.ts';
